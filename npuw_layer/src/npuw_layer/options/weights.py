"""What is done to weights and to arithmetic with them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class WeightOptions(OptionGroup):
    """Weights and arithmetic."""

    title: ClassVar[str] = "Weights and arithmetic"

    precision: Literal["f16", "bf16", "f32"] = Field("f16", alias="INFERENCE_PRECISION_HINT")
    """The element type of activations and caches; f32 is for exact comparison."""
    dynamic_quantization_group_size: int = Field(
        0, alias="DYNAMIC_QUANTIZATION_GROUP_SIZE", ge=0, le=(1 << 64) - 1
    )
    """0 keeps activations floats. Any other number quantises them to 8 bits, a scale per token,
    where weights have 8 bits and one scale per column (W8A8); tokens are not cut into groups. The
    graph interpreter (NPUW_DEVICES=CPU) stays exact."""
    enable_weightless: bool | None = Field(None, alias="ENABLE_WEIGHTLESS")
    """Blobs without weights, or with them, whatever CACHE_MODE says."""
    cache_rope: bool = Field(True, alias="NPUW_LLM_CACHE_ROPE")
    """Look rotary angles up in a table instead of computing their sines for each step."""
