"""Low-rank adapters of one product, and the ways in which they become part of a model."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from npuw_layer.backends.protocols import Array


class Mode(Enum):
    """How adapters become part of a model; openvino_genai's ``AdapterConfig.Mode``."""

    DYNAMIC = "DYNAMIC"
    """As states of any rank up to NPUW_LLM_MAX_LORA_RANK."""
    STATIC_RANK = "STATIC_RANK"
    """As states of the rank that they have now, and no larger one."""
    STATIC = "STATIC"
    """As constants beside the weights, which stay as they are stored."""
    FUSE = "FUSE"
    """Added to the weights."""

    @property
    def is_settable(self) -> bool:
        """Whether a request sets them."""
        return self in (Mode.DYNAMIC, Mode.STATIC_RANK)


class LowRank(Protocol):
    """What is added to a product y = x Wᵀ: ((x Aᵀ) · alpha) Bᵀ."""

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
