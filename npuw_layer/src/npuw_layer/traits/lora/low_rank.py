"""Low-rank adapter of one matmul, and the modes of insertion."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from npuw_layer.backends.protocols import Array


class Mode(Enum):
    """Mode of insertion of adapters; openvino_genai's ``AdapterConfig.Mode``."""

    DYNAMIC = "DYNAMIC"
    """States of any rank up to NPUW_LLM_MAX_LORA_RANK."""
    STATIC_RANK = "STATIC_RANK"
    """States of at most the present rank."""
    STATIC = "STATIC"
    """Constants in addition to the weights, which stay as stored."""
    FUSE = "FUSE"
    """Sums of adapters and weights."""

    @property
    def is_settable(self) -> bool:
        """True if requests set adapters."""
        return self in (Mode.DYNAMIC, Mode.STATIC_RANK)


class LowRank(Protocol):
    """Adapter of a matmul y = x Wᵀ, which adds ((x Aᵀ) · alpha) Bᵀ."""

    @property
    def a(self) -> Array:
        """A [rank, in], f32 or f16."""
        ...

    @property
    def alpha(self) -> Array:
        """Alpha f32 [1, rank]."""
        ...

    @property
    def b(self) -> Array:
        """B [out, rank], of A's type."""
        ...
