"""The digest by which a saved conversation is known to be whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from npuw_layer.ports import Array


def digest_of(header: Mapping[str, Any], tensors: Iterable[Array]) -> str:
    """Return the SHA-256, hexadecimal, of a header without its own digest and of its tensors."""
    whole = hashlib.sha256(json.dumps(header).encode())
    for each in tensors:
        whole.update(each.data)
    return whole.hexdigest()
