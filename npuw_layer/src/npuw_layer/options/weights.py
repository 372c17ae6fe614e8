"""What is done to weights and to arithmetic with them."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from npuw_layer.options.base import OURS, OptionGroup


class WeightOptions(OptionGroup):
    """Weights and arithmetic."""

    title: ClassVar[str] = "Weights and arithmetic"

    precision: Literal["f16", "bf16", "f32"] = Field("f16", alias="INFERENCE_PRECISION_HINT")
    """The element type of activations, and of caches unless KV_CACHE_PRECISION says another; f32 is
    for exact comparison."""
    dynamic_quantization_group_size: int = Field(
        0, alias="DYNAMIC_QUANTIZATION_GROUP_SIZE", ge=0, le=(1 << 64) - 1
    )
    """0 keeps activations floats. Any other number quantises them to 8 bits, a scale per token,
    where weights have 8 bits and one scale per column (W8A8); tokens are not cut into groups. The
    graph interpreter (NPUW_DEVICES=CPU) stays exact."""
    enable_weightless: bool | None = Field(None, alias="ENABLE_WEIGHTLESS")
    """Blobs without weights, or with them, whatever CACHE_MODE says; if unset, that decides. Of one
    stage: its weights."""
    cache_rope: bool = Field(True, alias="NPUW_LLM_CACHE_ROPE")
    """Look rotary angles up in a table instead of computing their sines for each step."""
    weights_bank: str = Field("", alias="NPUW_WEIGHTS_BANK", max_length=256)
    """The name of the weights bank. Models that name the same one have one copy of equal weights in
    device memory, in this process and, unlike in the original, in all others of the user; empty
    keeps a bank to oneself."""
    weights_bank_alloc: Literal["", "CPU", "NPU", "SHARED"] = Field(
        "", alias="NPUW_WEIGHTS_BANK_ALLOC"
    )
    """Where the bank's weights are. Empty uses them where their file is mapped, and allocates what
    must be converted; so do the original's names of a device, as all devices see the host's memory
    here. SHARED (ours) copies all of them, once for all processes, to memory that does not
    depend on the file any more; a bank without a name is then that of all who have none."""
    weights_offload: Literal["NO", "SYNC", "ASYNC"] = Field(
        "NO", alias="NPUW_WEIGHTS_OFFLOAD", json_schema_extra=OURS
    )
    """Whether the weights of layers stay in the host's memory and come when they are needed: ASYNC
    copies those of the next layer while one computes, SYNC waits for each copy (to compare). The
    head is then part of each model. It takes models with at least four equal layers in a row."""
    weights_budget: int = Field(
        0, alias="NPUW_WEIGHTS_BUDGET", ge=0, le=1 << 50, json_schema_extra=OURS
    )
    """Bytes of device memory for weights if they are offloaded, e.g. 100000000 or "96MiB"; 0 takes
    as little as can be. Layers that it has room for are copied once."""
    weights_reserved: int = Field(
        1, alias="NPUW_WEIGHTS_RESERVED", ge=1, le=64, json_schema_extra=OURS
    )
    """How many layers ahead weights are copied."""

    @field_validator("weights_budget", mode="before")
    @classmethod
    def _read_bytes(cls, value: object) -> object:
        """Take "96MiB" as well as a number."""
        found = re.fullmatch(r"(\d+) ?([KMG])iB", value) if isinstance(value, str) else None
        return int(found[1]) << 10 * (1 + "KMG".index(found[2])) if found else value
