"""How K and V are stored."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OURS, OptionGroup

KvElement = Literal["", "f32", "f16", "bf16", "i8", "f8e4m3", "f8e5m2"]
"""What K and V are stored as; "" is what activations are."""

KV_ELEMENTS: dict[str, KvElement] = {
    "": "",
    "f32": "f32",
    "f16": "f16",
    "bf16": "bf16",
    "i8": "i8",
    "u8": "i8",
    "f8e4m3": "f8e4m3",
    "f8e5m2": "f8e5m2",
}
"""By the values of KV_CACHE_PRECISION, where activations are of another type."""


class KvOptions(OptionGroup):
    """K and V caches."""

    title: ClassVar[str] = "KV cache"

    kv_cache_precision: Literal["", "f32", "f16", "bf16", "i8", "u8", "f8e4m3", "f8e5m2"] = Field(
        "", alias="KV_CACHE_PRECISION"
    )
    """The element type of K and V caches. Empty is that of activations (INFERENCE_PRECISION_HINT);
    the original stores f16 then, whatever activations are. f32, f16 and bf16 are floats; f8e4m3 and
    f8e5m2 are floats of 8 bits; what is larger than they hold becomes the largest. i8 keeps 8 bits
    and a scale for each row of a head, and u8 is the same here, as rows need no zero points.
    Attention reads all of them as they are, with less memory and less traffic: f16 halves both
    where activations are f32. Only f32 where activations have 16 bits is converted before: the same
    numbers, and no less of anything."""
    optimize_v_tensors: bool = Field(False, alias="NPUW_LLM_OPTIMIZE_V_TENSORS")
    """Store V transposed, each channel's values side by side, as the original does unless told
    otherwise. The product reads V as fast either way here; new rows have to be copied then, as with
    NPUW_LLM_KV_SWITCHOVER = COPY. With HFA or DYNAMIC attention, in either hint, V stays as it is,
    which the original does with DYNAMIC alone."""
    optimize_fp8: bool = Field(False, alias="NPUW_LLM_OPTIMIZE_FP8")
    """Store caches in the floats of 8 bits that a quantised model rounds to (FakeConvert), if that
    is one type everywhere: what it computes of K and V for each token anew is stored. With
    KV_CACHE_PRECISION of another type the model is computed as it is."""
    kv_switchover: Literal["ZERO_COPY", "COPY"] = Field(
        "ZERO_COPY", alias="NPUW_LLM_KV_SWITCHOVER", json_schema_extra=OURS
    )
    """From prefill to generate: ZERO_COPY lets prefill write its rows where generate reads them,
    COPY copies them as the original does. With NPUW_LLM_OPTIMIZE_V_TENSORS they are copied."""
    enable_block_based_kv_cache: bool = Field(False, alias="NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE")
    """Store caches in blocks of a chunk's length, which are allocated when tokens come for them: a
    short conversation takes little memory, and nothing moves when it grows. Needs prompts that are
    read in chunks. Once in 128 tokens, or in a block's if that has more, a step takes longer, as
    new blocks are bound."""
