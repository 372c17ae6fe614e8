"""Compiled programs on disk."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

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
