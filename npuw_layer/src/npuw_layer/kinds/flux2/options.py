"""The option that requests FLUX.2 defaults."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import OptionGroup
from npuw_layer.options.kinds import KindOptions
from npuw_layer.options.plain import PlainOptions


class Flux2Options(KindOptions):
    """Image generation with FLUX.2."""

    title: ClassVar[str] = "FLUX.2"
    flags: ClassVar[tuple[str, ...]] = ("flux2",)
    follows: ClassVar[type[OptionGroup] | None] = PlainOptions

    flux2: bool = Field(False, alias="NPUW_FLUX2")
    """The model is one of those of a FLUX.2 that make an image: text encoder, transformer, decoder
    or encoder of images; its inputs tell which. It goes through NPUW (NPU_USE_NPUW), so that its
    shapes must be static: as one with NPUW_ONLINE_PIPELINE = REG, or NONE for images, unless that
    says something else."""
