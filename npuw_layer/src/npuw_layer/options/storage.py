"""Options of weights and files: arithmetic, bank, offload, cache of programs, blobs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from npuw_layer.options.base import OURS, PER_TOKEN, Only, OptionGroup


class WeightOptions(OptionGroup):
    """Weights and arithmetic."""

    title: ClassVar[str] = "Weights and arithmetic"

    precision: Literal["f16", "bf16", "f32"] = Field("f16", alias="INFERENCE_PRECISION_HINT")
    """The element type of activations, and of caches unless KV_CACHE_PRECISION sets another; f32 is
    for exact comparison."""
    dynamic_quantization_group_size: Annotated[
        int,
        Only(
            (0, PER_TOKEN),
            "groups of a token's channels have no scales of their own; set 0 for float "
            "activations, or -1 for one scale per token",
        ),
    ] = Field(0, alias="DYNAMIC_QUANTIZATION_GROUP_SIZE")
    """0 keeps activations floats. UINT64_MAX, or -1, quantises those of all matmuls with compressed
    weights to 8 bits, with one scale per token; a model is rejected if such weights have fewer bits
    or several scales per column, or if all weights are floats. NPUW_DEVICES=CPU, the graph
    interpreter, stays exact, and so does OpenVINO's CPU plugin (OPENVINO_CPU) on x86."""
    enable_weightless: bool | None = Field(None, alias="ENABLE_WEIGHTLESS")
    """YES: blobs are without weights, regardless of CACHE_MODE; if unset, CACHE_MODE decides.
    For one stage: its blobs."""
    cache_rope: bool = Field(True, alias="NPUW_LLM_CACHE_ROPE")
    """Look up cos and sin of positions in a table, instead of computing them at each step."""
    weights_bank: str = Field("", alias="NPUW_WEIGHTS_BANK", max_length=256)
    """The name of the weights bank. Models with the same name share one copy of equal weights in
    device memory, within this process and, unlike in NPUW, with all processes of the user; an empty
    name shares nothing."""
    weights_bank_alloc: Literal["", "CPU", "NPU", "SHARED"] = Field(
        "", alias="NPUW_WEIGHTS_BANK_ALLOC"
    )
    """Memory of the bank's weights. Empty uses weights in the mapped file, and allocates only
    converted ones; so do NPUW's device names, as all devices read the host's memory here. SHARED
    (ours) copies all weights, once for all processes, to memory that is independent of the file;
    banks without a name are then one bank."""
    weights_offload: Literal["NO", "SYNC", "ASYNC"] = Field(
        "NO", alias="NPUW_WEIGHTS_OFFLOAD", json_schema_extra=OURS
    )
    """Keep the weights of layers in host memory, and copy them when a layer needs them: ASYNC
    copies the next layer's weights while one computes, SYNC waits for each copy (for comparison).
    The LM head is then part of each model. The model must have at least four equal layers in a row.
    """
    weights_budget: int = Field(
        0, alias="NPUW_WEIGHTS_BUDGET", ge=0, le=1 << 50, json_schema_extra=OURS
    )
    """Bytes of device memory for offloaded weights, e.g. 100000000 or "96MiB"; 0 uses as few as
    possible. Layers that fit permanently are copied once."""
    weights_reserved: int = Field(
        1, alias="NPUW_WEIGHTS_RESERVED", ge=1, le=64, json_schema_extra=OURS
    )
    """Layers whose weights are copied ahead."""

    @field_validator("dynamic_quantization_group_size", mode="before")
    @classmethod
    def _read_group_size(cls, value: object) -> object:
        """Convert -1 as OpenVINO does, to the largest number of 64 bits."""
        return PER_TOKEN if str(value) == "-1" else value

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
    """Folder of compiled programs; empty caches none."""
    npuw_cache_dir: str = Field("", alias="NPUW_CACHE_DIR")
    """Folder of compiled programs if CACHE_DIR is empty: NPUW keeps complete models in one and
    submodels in the other; here each submodel is always cached separately."""
    cache_mode: Literal["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"] = Field(
        "OPTIMIZE_SIZE", alias="CACHE_MODE"
    )
    """OPTIMIZE_SIZE stores only programs, which all use the weights in the model's files.
    OPTIMIZE_SPEED also stores the weights, once and in the programs' form, so that a start converts
    none: in an exported blob, which then needs no other file, and in CACHE_DIR."""
    blob_path: str = Field("", alias="BLOB_PATH")
    """File of a complete compiled model, *.blob: it is imported instead of compiling; with
    EXPORT_BLOB, it is written."""
    export_blob: bool = Field(False, alias="EXPORT_BLOB")
    """Write the compiled model to BLOB_PATH, or, if that is empty, to openvino_model.blob in the
    current folder. CACHE_MODE selects whether it contains the weights."""
    weights_path: str = Field("", alias="WEIGHTS_PATH")
    """File or folder of the weights that an imported blob lacks: the model's .bin, or the folder of
    its files."""
    model_ptr: str = Field("", alias="MODEL_PTR")
    """Model of a blob without weights, another form of WEIGHTS_PATH: its .xml or folder; in
    OpenVINO it is a model object."""

    encryption: tuple[Callable[[bytes], bytes], ...] = Field((), alias="CACHE_ENCRYPTION_CALLBACKS")
    """Two functions, one that encrypts and one that decrypts bytes: for entries of CACHE_DIR, whose
    unencrypted entries are then not used, and for exported blobs. Encrypted files are read
    completely, and copied."""
    ensure_compatibility: bool = Field(False, alias="NPUW_ENSURE_COMPATIBILITY")
    """Export only blobs that any NPU of this platform and version can import: reject blobs that are
    encrypted, for a user-defined platform, or with programs of other devices than the NPU."""
    untrusted_source: bool = Field(False, alias="NPU_UNTRUSTED_SOURCE")
    """Blobs may come from an untrusted source. Then blobs of NPUW are rejected; those of static
    models for the NPU itself are imported, as the driver verifies their programs."""

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
        """Check the suffix here, because openvino_genai checks it only after compiling."""
        if value and not value.endswith(".blob"):
            raise ValueError("must end in .blob")
        return value
