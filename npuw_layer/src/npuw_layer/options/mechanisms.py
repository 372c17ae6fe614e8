"""Options of OpenVINO that have no effect here, or are not supported, with the reasons.

Where this stack has one implementation, options that choose among several are accepted without
effect: they are checked and can be read back, so that configurations for OpenVINO are valid here.
Types and defaults are OpenVINO's.

Source: docs/reference/npuw.md#options, docs/reference/npuw.md#execution,
docs/reference/npuw.md#profiling; npuw_option_defs.inc of OpenVINO's NPU plugin.
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

    title: ClassVar[str] = "Accepted for compatibility, without effect"

    dyn_quant: bool = Field(False, alias="NPUW_DQ")
    """The device always computes with compressed weights; DYNAMIC_QUANTIZATION_GROUP_SIZE selects
    whether it quantizes activations, too."""
    dyn_quant_full: bool = Field(True, alias="NPUW_DQ_FULL")
    """No effect, like NPUW_DQ: no graph has to be rewritten for compressed weights."""
    compiler_dyn_quant: bool = Field(False, alias="NPU_COMPILER_DYNAMIC_QUANTIZATION")
    """No effect, like NPUW_DQ: the compiler always accepts compressed weights."""
    dcoff_type: Literal["", "i8", "f16"] = Field("", alias="NPUW_DCOFF_TYPE")
    """No effect, like NPUW_DQ: the host decompresses no weights, so no type applies."""
    dcoff_scale: bool = Field(False, alias="NPUW_DCOFF_SCALE")
    """No effect, like NPUW_DQ: scales go to the device with their weights."""
    unqdq: bool = Field(False, alias="NPUW_UNQDQ")
    """FakeQuantize and compressed weights are supported directly; no pairs have to be removed."""
    mm_gated: bool = Field(True, alias="NPUW_MM_GATED")
    """Matmuls of gates are as accurate as all others."""
    pmm: str = Field("2", alias="NPUW_PMM")
    """Engines always merge matmuls of the same rows; YES, NO, empty, or an axis."""
    slice_out: bool = Field(False, alias="NPUW_SLICE_OUT")
    """The LM head always runs for the last tokens only."""
    host_gather: bool = Field(True, alias="NPUW_HOST_GATHER")
    """The device looks up embeddings in the mapped model file, so no table is copied to it; NPUW
    avoids that copy by a lookup on the host."""
    vocab_as_input: bool = Field(False, alias="NPUW_LLM_VOCAB_AS_INPUT")
    """The LM head's vocabulary is always an input of its program, as all weights are; it is stored
    once, together with the table of embeddings if the model has one matrix for both."""
    cwai: bool = Field(False, alias="NPUW_CWAI")
    """Weights are always inputs of programs, folded or not; unlike in NPUW, it does not exclude
    NPUW_FOLD."""
    funcall_for_all: bool = Field(False, alias="NPUW_FUNCALL_FOR_ALL")
    """A submodel with one call runs as one with several calls."""
    funcall_async: bool = Field(False, alias="NPUW_FUNCALL_ASYNC")
    """Weights of each call are bound before the first inference: no work is left to do ahead."""
    unfold_ireqs: bool = Field(False, alias="NPUW_UNFOLD_IREQS")
    """Each call of a function always has its own request."""
    fuse_unfolded: bool = Field(False, alias="NPUW_FUSE_UNFOLDED")
    """The ops between isolated ops are always one submodel."""
    keep_blocks_tagged: tuple[str, ...] = Field((), alias="NPUW_ONLINE_KEEP_BLOCKS_TAGGED")
    """All submodels of NPUW_ONLINE_ISOLATE are kept, however small or rare they are."""
    f16_interconnect: bool = Field(True, alias="NPUW_F16IC")
    """Links between submodels have the type of activations: INFERENCE_PRECISION_HINT."""
    attn_dyn: bool = Field(True, alias="NPUW_ATTN_DYN")
    """DYNAMIC attention always has the stored length."""
    attn_no_copy: bool = Field(False, alias="NPUW_ATTN_NO_COPY")
    """Attention always reads K and V in place."""
    hfa_fused: bool = Field(False, alias="NPUW_ATTN_HFA_FUSED")
    """A tile of HFA is always one program."""
    hfa_mask_skipping: bool = Field(False, alias="NPUW_ATTN_HFA_MASK_SKIPPING")
    """HFA always skips tiles without visible positions."""
    parallel_compile: bool = Field(False, alias="NPUW_PARALLEL_COMPILE")
    """Equal layers of all variants are compiled once, which leaves little to parallelise; NPUW
    calls the option unstable."""
    turbo: bool = Field(False, alias="NPU_TURBO")
    """The simulated device has one clock, and waits are as short as possible."""
    bypass_umd_caching: bool = Field(False, alias="NPU_BYPASS_UMD_CACHING")
    """The driver caches models that it compiles itself, and compiles none here: CACHE_DIR does."""
    compiler_type: Literal["PREFER_PLUGIN", "PLUGIN", "DRIVER"] = Field(
        "PREFER_PLUGIN", alias="NPU_COMPILER_TYPE"
    )
    """One compiler exists, outside plugin and driver; NPUW_COMPILER names it."""
    defer_weights_load: bool = Field(False, alias="NPU_DEFER_WEIGHTS_LOAD")
    """Files are mapped, so weights are always read when a program first runs."""
    num_streams: int = Field(-1, alias="NUM_STREAMS", ge=-2)
    """No effect, like PERFORMANCE_HINT: one inference uses the complete device. AUTO, NUMA or a
    number."""
    num_requests: int = Field(1, alias="PERFORMANCE_HINT_NUM_REQUESTS", ge=0)
    """No effect, like PERFORMANCE_HINT: the number of requests is not limited."""
    strides_for: tuple[str, ...] = Field((), alias="NPU_ENABLE_STRIDES_FOR")
    """Host tensors of any input may have strides: they are copied to the device's memory."""
    performance_hint: Literal["", "LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"] = Field(
        "", alias="PERFORMANCE_HINT"
    )
    """One inference uses the complete device, and others wait for it. NPU_TILES sets its tiles,
    NPUW_LLM_BATCH_SLOTS the conversations that share a step."""

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
        """Yield a message for each set option of this group: the reason that it has no effect."""
        for name in sorted(_FIELDS & self.model_fields_set):
            field = MechanismOptions.model_fields[name]
            value = written(getattr(self, name))
            yield f"{field.alias} = {value} has no effect: {effects(MechanismOptions)[name]}"


_FIELDS = set(MechanismOptions.model_fields)

WITHOUT_EFFECT: tuple[str, ...] = tuple(
    field.alias or "" for field in MechanismOptions.model_fields.values()
)
"""OpenVINO's names of these options."""


ABSENT: dict[str, str] = {
    "NPU_COMPILATION_MODE_PARAMS": "it configures passes of Intel's compiler; use "
    "INFERENCE_PRECISION_HINT, NPU_TILES and DYNAMIC_QUANTIZATION_GROUP_SIZE",
    "NPUW_WEIGHTS_HANDLE_PROVIDER": "use WEIGHTS_PATH or MODEL_PTR to locate weights",
    "NPUW_KOKORO_OVERLAP": "use NPUW_KOKORO_OVERLAP_SIZE, its name in OpenVINO 2026.4",
    "NPUW_GQA_MANAGED": "it was added after OpenVINO 2026.4, for hosts that put new rows into "
    "presents; here the device returns complete presents",
}
"""Reasons by name; each ends the sentence "is not supported: …"."""
