"""Settings of a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from genai_layer.serve.limits import Limits
from genai_layer.serve.models.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server, as the command line has them."""

    models: Sequence[ModelSpec]
    """Models of different names; the first one is loaded at the start."""
    limits: Limits
    max_bytes: int | None = None
    """Upper bound of the weights of loaded models; None for no bound."""
    host: str = "127.0.0.1"
    port: int = 8000
    """Port; 0 for a free one."""
    api_key: str | None = None
    """Key that requests must have; None for none."""
    cors_origins: Sequence[str] = ()
    """Origins whose pages may send requests."""
    grace: float = 30.0
    """Seconds that requests in progress have at the shutdown."""
