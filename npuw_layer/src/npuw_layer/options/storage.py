"""Options of weights and files: arithmetic, bank, offload, cache of programs, blobs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
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
    """Memory of the bank's weights. Empty uses weights where their file is mapped, and allocates
    converted ones; so do the original's device names, as all devices read the host's memory here.
    SHARED (ours) copies all weights, once for all processes, to memory that no longer depends on
    the file; banks without a name are then one bank."""
    weights_offload: Literal["NO", "SYNC", "ASYNC"] = Field(
        "NO", alias="NPUW_WEIGHTS_OFFLOAD", json_schema_extra=OURS
    )
    """Weights of layers stay in the host's memory, and are copied when a layer needs them: ASYNC
    copies the next layer's while one computes, SYNC waits for each copy (to compare). The LM head
    is then part of each model. The model must have at least four equal layers in a row."""
    weights_budget: int = Field(
        0, alias="NPUW_WEIGHTS_BUDGET", ge=0, le=1 << 50, json_schema_extra=OURS
    )
    """Bytes of device memory for weights if they are offloaded, e.g. 100000000 or "96MiB"; 0 takes
    as little as can be. Layers that it has room for are copied once."""
    weights_reserved: int = Field(
        1, alias="NPUW_WEIGHTS_RESERVED", ge=1, le=64, json_schema_extra=OURS
    )
    """Layers whose weights are copied ahead."""

    @field_validator("weights_budget", mode="before")
    @classmethod
    def _read_bytes(cls, value: object) -> object:
        """Convert "96MiB" to a number of bytes."""
        found = re.fullmatch(r"(\d+) ?([KMG])iB", value) if isinstance(value, str) else None
        return int(found[1]) << 10 * (1 + "KMG".index(found[2])) if found else value


class CacheOptions(OptionGroup):
    """The cache of compiled programs."""

    title: ClassVar[str] = "Cache of programs"

    cache_dir: str = Field("", alias="CACHE_DIR")
    """Folder that keeps compiled programs; empty keeps none."""
    npuw_cache_dir: str = Field("", alias="NPUW_CACHE_DIR")
    """The same, if CACHE_DIR is empty: the original keeps whole models in one and submodels in the
    other, and here each submodel is kept by itself anyway."""
    cache_mode: Literal["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"] = Field(
        "OPTIMIZE_SIZE", alias="CACHE_MODE"
    )
    """OPTIMIZE_SIZE keeps programs alone, which all use the weights in the model's files.
    OPTIMIZE_SPEED keeps the weights with them, once and as programs read them, so that a start
    converts none: in an exported blob, which then needs no other file, and in CACHE_DIR."""
    blob_path: str = Field("", alias="BLOB_PATH")
    """A whole compiled model in one file, *.blob: it is imported instead of compiling anything; or
    written, with EXPORT_BLOB."""
    export_blob: bool = Field(False, alias="EXPORT_BLOB")
    """Write what was compiled to BLOB_PATH; if that is empty, to openvino_model.blob in the current
    folder. CACHE_MODE says whether the weights are in it."""
    weights_path: str = Field("", alias="WEIGHTS_PATH")
    """File or folder with the weights that an imported blob lacks: the model's .bin, or the folder
    of its files."""
    model_ptr: str = Field("", alias="MODEL_PTR")
    """The same, by the model: its .xml or folder, where OpenVINO takes a model's object."""

    encryption: tuple[Callable[[bytes], bytes], ...] = Field((), alias="CACHE_ENCRYPTION_CALLBACKS")
    """Two functions of yours, one that encrypts and one that decrypts bytes: for entries of
    CACHE_DIR, of which those in clear are then not used, and for exported blobs. What is encrypted
    is read as a whole, and copied."""
    ensure_compatibility: bool = Field(False, alias="NPUW_ENSURE_COMPATIBILITY")
    """Export only what any NPU of this platform and version can import: a blob that is encrypted,
    for a platform of your own, or with programs of other devices than the NPU is refused."""
    untrusted_source: bool = Field(False, alias="NPU_UNTRUSTED_SOURCE")
    """Blobs may come from an untrusted source. Then no blob of NPUW is imported; those of static
    models for the NPU itself are, as the driver verifies what they run."""

    @field_validator("encryption")
    @classmethod
    def _check_encryption(
        cls, value: tuple[Callable[[bytes], bytes], ...]
    ) -> tuple[Callable[[bytes], bytes], ...]:
        if len(value) not in (0, 2):
            raise ValueError("must be two functions: one that encrypts and one that decrypts")
        return value

    @property
    def cache_folder(self) -> Path | None:
        """Folder of compiled programs; None without a cache."""
        chosen = self.cache_dir or self.npuw_cache_dir
        return Path(chosen).expanduser() if chosen else None

    @field_validator("blob_path")
    @classmethod
    def _check_blob_path(cls, value: str) -> str:
        """Check the suffix here, as openvino_genai checks it only after compiling."""
        if value and not value.endswith(".blob"):
            raise ValueError("must end in .blob")
        return value
