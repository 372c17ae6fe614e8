"""Properties of the NPU plugin itself: which way a model goes."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class PlainOptions(OptionGroup):
    """Plain NPU properties."""

    title: ClassVar[str] = "Plain NPU properties"

    use_npuw: bool | None = Field(None, alias="NPU_USE_NPUW")
    """YES leaves the model to NPUW, NO runs a static model as it is; if unset, NPUW_LLM decides."""
    llm: bool | None = Field(None, alias="NPUW_LLM")
    """Whether NPUW is to split the model as a language model; if unset, that follows from
    NPU_USE_NPUW, and if that is unset, too, from the model: it must be split if its inputs have
    dynamic shapes."""
