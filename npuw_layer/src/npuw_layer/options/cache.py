"""Compiled programs on disk."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from npuw_layer.options.base import OptionGroup


class CacheOptions(OptionGroup):
    """The cache of compiled programs."""

    title: ClassVar[str] = "Cache of programs"

    cache_dir: str = Field("", alias="CACHE_DIR")
    """Folder that keeps compiled programs; empty keeps none."""
    cache_mode: Literal["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"] = Field(
        "OPTIMIZE_SIZE", alias="CACHE_MODE"
    )
    """OPTIMIZE_SIZE makes blobs without weights, which all share one copy of the model's file;
    OPTIMIZE_SPEED puts the weights into each blob."""
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

    @field_validator("cache_dir", "blob_path", "weights_path", "model_ptr")
    @classmethod
    def _check_path(cls, value: str) -> str:
        """No file is called so, and the system's own error names no option."""
        if "\0" in value:
            raise ValueError("must be text without null characters")
        return value

    @field_validator("blob_path")
    @classmethod
    def _check_blob_path(cls, value: str) -> str:
        """openvino_genai checks this, too, but after compiling."""
        if value and not value.endswith(".blob"):
            raise ValueError("must end in .blob")
        return value
