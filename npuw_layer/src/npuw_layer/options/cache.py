"""Compiled programs on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from npuw_layer.options.base import OptionGroup


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
    """Where an imported blob finds the weights that it is without: the model's .bin, or the folder
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
    """Whether blobs may come from somebody who is not trusted: then none of NPUW is imported. Those
    of static models for the NPU itself are: the driver verifies what they run."""

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
        """Where compiled programs are kept, if they are."""
        chosen = self.cache_dir or self.npuw_cache_dir
        return Path(chosen).expanduser() if chosen else None

    @field_validator("blob_path")
    @classmethod
    def _check_blob_path(cls, value: str) -> str:
        """openvino_genai checks this, too, but after compiling."""
        if value and not value.endswith(".blob"):
            raise ValueError("must end in .blob")
        return value
