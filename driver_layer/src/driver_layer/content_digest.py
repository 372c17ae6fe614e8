"""The digest by which content that was written is known to be whole when it is read.

It tells damage, not forgery: who changes content can change its digest, too. All layers use this
one; none of them has it as its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def content_digest(pieces: Iterable[bytes | memoryview]) -> bytes:
    """Return the SHA-256 of content that is given in pieces."""
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.digest()
