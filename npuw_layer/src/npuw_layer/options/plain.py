"""Properties of the NPU plugin that have one value here."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class PlainOptions(OptionGroup):
    """Plain NPU properties."""

    title: ClassVar[str] = "Plain NPU properties"

    use_npuw: bool | None = Field(None, alias="NPU_USE_NPUW")
    """YES leaves the model to NPUW, NO runs a static model as it is; else see ``routing``."""
    llm: bool | None = Field(None, alias="NPUW_LLM")
    """Whether NPUW is to split the model as a language model."""
