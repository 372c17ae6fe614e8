"""Saved conversations that were changed, with a matching digest."""

from __future__ import annotations

import json

from driver_layer.support.files import content_digest


def with_fitting_digest(content: bytes) -> bytes:
    """Return the file of a saved conversation with the digest of its current content."""
    end = 8 + int.from_bytes(content[:8], "little")
    header, rows = json.loads(content[8:end]), content[end:]
    del header["__metadata__"]["digest"]
    header["__metadata__"]["digest"] = content_digest([json.dumps(header).encode(), rows]).hex()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + rows
