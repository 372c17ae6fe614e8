"""Ids and times of replies, and the version of the stack."""

from __future__ import annotations

import secrets
import time

from genai_layer import __version__

FINGERPRINT = f"genai_layer-{__version__}"
"""Version of the software that answers; equal seeds give equal texts as long as it is the same."""


def new_id(prefix: str) -> str:
    """Return an id that no other reply has."""
    return f"{prefix}{secrets.token_hex(12)}"


def now() -> int:
    """Return the time in Unix seconds."""
    return int(time.time())
