"""Properties of the NPU plugin that have one value here."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from npuw_layer.options.base import Only, OptionGroup


class PlainOptions(OptionGroup):
    """Plain NPU properties."""

    title: ClassVar[str] = "Plain NPU properties"

    use_npuw: Annotated[bool, Only((True,), "there is no other way to run a model")] = Field(
        True, alias="NPU_USE_NPUW"
    )
    """Run models by way of NPUW, which is what this runtime is."""
    llm: Annotated[bool, Only((True,), "only language models are")] = Field(True, alias="NPUW_LLM")
    """Treat the model as a language model: dynamic, with state."""
