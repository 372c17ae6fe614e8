"""Who compiles, and how."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import OURS, OptionGroup


class CompilerOptions(OptionGroup):
    """The compiler."""

    title: ClassVar[str] = "Compiler"

    compiler: str = Field("npuc", alias="NPUW_COMPILER", json_schema_extra=OURS)
    """The compiler, by its name among the entry points."""
    fold: bool = Field(True, alias="NPUW_FOLD")
    """Whether equal layers are compiled once and instantiated for each, as NPUW does for LLMs."""
