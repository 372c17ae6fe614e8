"""How experts of mixtures are run, where NPUW_LLM_…_MOE_HINT lets the host route tokens."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import MANY, OptionGroup


class ExpertOptions(OptionGroup):
    """Experts whose tokens the host brings to them (HOST_ROUTED)."""

    title: ClassVar[str] = "Mixtures of experts"

    moe_token_chunk_size: int = Field(0, alias="NPUW_MOE_TOKEN_CHUNK_SIZE", ge=0, le=MANY)
    """Tokens that an expert takes at once where it may get several; what it gets is cut into so
    many and padded. 0 takes as many as an expert gets on average, at least 16."""
    moe_pool_size: int = Field(8, alias="NPUW_MOE_POOL_SIZE", ge=0, le=1 << 16)
    """Experts of a layer that stay bound to a program of their own, those that were used last; to
    bind one anew costs the host a part of its run. 0 binds one program anew for each."""
