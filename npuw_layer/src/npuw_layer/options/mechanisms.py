"""Options of the original that have no effect here, or are missing, with the reasons.

Where this stack has one implementation, options that choose among several are accepted without
effect: they are checked and can be read back, so that configurations for the original are valid
here. Types and defaults are the original's.

Source: fact sheet npuw §b, §e.5; npuw_option_defs.inc of the original's plugin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from npuw_layer.options.base import (
    OptionGroup,
    effects,
    written,
)


class MechanismOptions(OptionGroup):
    """Options that choose among implementations of which this stack has one."""

    title: ClassVar[str] = "Taken as the original's, all values alike here"

    dyn_quant: bool = Field(False, alias="NPUW_DQ")
    """Compressed weights go to the device as they are, which computes with them; whether it
    quantizes activations, too, says DYNAMIC_QUANTIZATION_GROUP_SIZE."""
    dyn_quant_full: bool = Field(True, alias="NPUW_DQ_FULL")
    """As NPUW_DQ: no graph has to be rewritten for compressed weights."""
    compiler_dyn_quant: bool = Field(False, alias="NPU_COMPILER_DYNAMIC_QUANTIZATION")
    """As NPUW_DQ: the compiler takes compressed weights in any case."""
    dcoff_type: Literal["", "i8", "f16"] = Field("", alias="NPUW_DCOFF_TYPE")
    """As NPUW_DQ: nothing is decompressed for a function on the host, so to no type."""
    dcoff_scale: bool = Field(False, alias="NPUW_DCOFF_SCALE")
    """As NPUW_DQ: scales go to the device with their weights."""
    unqdq: bool = Field(False, alias="NPUW_UNQDQ")
    """FakeQuantize and compressed weights are understood as they are: no pairs have to go."""
    mm_gated: bool = Field(True, alias="NPUW_MM_GATED")
    """Products of gates are as accurate as all others."""
    pmm: str = Field("2", alias="NPUW_PMM")
    """Engines put products of the same rows together by themselves; YES, NO, empty, or an axis."""
    slice_out: bool = Field(False, alias="NPUW_SLICE_OUT")
    """The head runs for the last tokens anyway."""
    host_gather: bool = Field(True, alias="NPUW_HOST_GATHER")
    """The device looks embeddings up where the model's file is mapped: no table has to be copied to
    it, which the original spares by looking them up on the host."""
    vocab_as_input: bool = Field(False, alias="NPUW_LLM_VOCAB_AS_INPUT")
    """The head's program takes the vocabulary as an input anyway, as all programs take weights: it
    is there once, with the table of embeddings if the model has one matrix for both."""
    cwai: bool = Field(False, alias="NPUW_CWAI")
    """Weights are inputs of programs anyway, folded or not; unlike the original's it goes with
    NPUW_FOLD."""
    funcall_for_all: bool = Field(False, alias="NPUW_FUNCALL_FOR_ALL")
    """A submodel that is there once is called as one that is there often."""
    funcall_async: bool = Field(False, alias="NPUW_FUNCALL_ASYNC")
    """Weights of each call are bound before the first inference: nothing is left to do ahead."""
    unfold_ireqs: bool = Field(False, alias="NPUW_UNFOLD_IREQS")
    """Each call of a function has a request of its own anyway."""
    fuse_unfolded: bool = Field(False, alias="NPUW_FUSE_UNFOLDED")
    """What lies between isolated ops is one submodel anyway."""
    keep_blocks_tagged: tuple[str, ...] = Field((), alias="NPUW_ONLINE_KEEP_BLOCKS_TAGGED")
    """What NPUW_ONLINE_ISOLATE names is kept, however small and however often it is there."""
    f16_interconnect: bool = Field(True, alias="NPUW_F16IC")
    """What links submodels has the type of what is computed: INFERENCE_PRECISION_HINT."""
    attn_dyn: bool = Field(True, alias="NPUW_ATTN_DYN")
    """DYNAMIC attention always has the length that is stored."""
    attn_no_copy: bool = Field(False, alias="NPUW_ATTN_NO_COPY")
    """Attention reads K and V where they lie."""
    hfa_fused: bool = Field(False, alias="NPUW_ATTN_HFA_FUSED")
    """A tile of HFA is one program anyway."""
    hfa_mask_skipping: bool = Field(False, alias="NPUW_ATTN_HFA_MASK_SKIPPING")
    """HFA always leaves out tiles that nobody attends to."""
    parallel_compile: bool = Field(False, alias="NPUW_PARALLEL_COMPILE")
    """Equal layers are compiled once, of all variants together: there is little left to share out;
    the original calls it unstable."""
    turbo: bool = Field(False, alias="NPU_TURBO")
    """The simulated device has one clock, and waits are as short as they can be."""
    bypass_umd_caching: bool = Field(False, alias="NPU_BYPASS_UMD_CACHING")
    """The driver keeps no cache of its own; CACHE_DIR is the only one."""
    compiler_type: Literal["PREFER_PLUGIN", "PLUGIN", "DRIVER"] = Field(
        "PREFER_PLUGIN", alias="NPU_COMPILER_TYPE"
    )
    """There is one compiler, and neither plugin nor driver has it; NPUW_COMPILER names it."""
    defer_weights_load: bool = Field(False, alias="NPU_DEFER_WEIGHTS_LOAD")
    """Weights are read when a program first runs anyway: files are mapped."""
    num_streams: int = Field(-1, alias="NUM_STREAMS", ge=-2)
    """As PERFORMANCE_HINT: one inference has the whole device; AUTO, NUMA or a number."""
    num_requests: int = Field(1, alias="PERFORMANCE_HINT_NUM_REQUESTS", ge=0)
    """As PERFORMANCE_HINT: there may be as many requests as are made."""
    strides_for: tuple[str, ...] = Field((), alias="NPU_ENABLE_STRIDES_FOR")
    """Host tensors of any input may have strides: they are copied to where the device reads."""
    performance_hint: Literal["", "LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"] = Field(
        "", alias="PERFORMANCE_HINT"
    )
    """One inference has the whole device, and others wait for it: none waits for the other tiles.
    NPU_TILES says how many it has, NPUW_LLM_BATCH_SLOTS how many conversations share a step."""

    @field_validator("num_streams", mode="before")
    @classmethod
    def _read_streams(cls, value: object) -> object:
        return {"AUTO": -1, "NUMA": -2}.get(value, value) if isinstance(value, str) else value

    @field_validator("pmm")
    @classmethod
    def _check_pmm(cls, value: str) -> str:
        axes = all(part.strip().isdecimal() for part in value.split(","))
        if not axes and value.upper() not in ("", "YES", "NO"):
            raise ValueError('must be YES, NO, empty, or axes such as "0,2"')
        return value

    def alike(self) -> Iterator[str]:
        """Yield a message for each set option of this group: the reason why it has no effect."""
        for name in sorted(_FIELDS & self.model_fields_set):
            field = MechanismOptions.model_fields[name]
            value = written(getattr(self, name))
            yield f"{field.alias} = {value} makes no difference: {effects(MechanismOptions)[name]}"


_FIELDS = set(MechanismOptions.model_fields)

ALIKE: tuple[str, ...] = tuple(
    field.alias or "" for field in MechanismOptions.model_fields.values()
)
"""OpenVINO's names of these options."""


ABSENT: dict[str, str] = {
    "NPU_COMPILATION_MODE_PARAMS": "it tells passes of Intel's compiler what to do, and npuc has "
    "others; INFERENCE_PRECISION_HINT, NPU_TILES and DYNAMIC_QUANTIZATION_GROUP_SIZE tell it",
    "NPUW_WEIGHTS_HANDLE_PROVIDER": "WEIGHTS_PATH or MODEL_PTR say where weights are",
    "NPUW_KOKORO_OVERLAP": "it is called NPUW_KOKORO_OVERLAP_SIZE, as OpenVINO 2026.4 has it",
    "NPUW_GQA_MANAGED": "it came after 2026.4, and lets the host put new rows into presents; here "
    "the device gives presents whole",
}
"""Reasons by name; each ends the sentence "is not here: …"."""
