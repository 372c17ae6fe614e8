"""Limits of a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that protect the server from its clients."""

    queue: int = 64
    """Requests of a model that may wait."""
    timeout: float = 600.0
    """Seconds from a request's arrival to its last token."""
    max_tokens: int = 4096
    """Tokens of an answer; requests for more are rejected."""
    max_body: int = 4 << 20
    """Bytes of a request's body."""
    body_timeout: float = 30.0
    """Seconds in which a request's body arrives."""
    head_timeout: float = 10.0
    """Seconds in which the head of a request arrives, or a connection ends."""
    write_timeout: float = 30.0
    """Seconds in which a client takes what is sent; else the connection is aborted."""
    connections: int = 512
    """Connections that are open at a time."""
    lenient: bool = False
    """True to ignore keywords of JSON schemas that a grammar cannot follow, not to reject them."""
