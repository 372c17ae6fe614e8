"""Functions that a request offers to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from genai_layer.serve.errors import BadRequest
from genai_layer.serve.openai.schemas.tools import Choice, Function, NamedFunction


@dataclass(frozen=True, slots=True)
class Offer:
    """Functions, and whether the model must call one."""

    functions: Sequence[Function]
    """Functions that the model may call; none without tools, or if the choice is none."""
    forced: bool
    """True if the model must call one."""
    parallel: bool
    """True if the model may call several."""

    @property
    def names(self) -> frozenset[str]:
        """Names of the functions."""
        return frozenset(one.name for one in self.functions)

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """Functions as chat templates read them."""
        return [
            {"type": "function", "function": one.model_dump(exclude={"strict", "type"})}
            for one in self.functions
        ]


def make_offer(
    functions: Sequence[Function],
    choice: Choice | NamedFunction | None,
    parallel: bool | None,
) -> Offer:
    """Return the offer of a request.

    Raises:
        BadRequest: two functions have one name, or the choice needs a function that is missing.
    """
    names = [one.name for one in functions]
    for name in names:
        if names.count(name) > 1:
            raise BadRequest(
                f"tools: two functions have the name {name}; rename one", param="tools"
            )
    if choice == "none":
        functions = []
    elif isinstance(choice, NamedFunction):
        functions = [one for one in functions if one.name == choice.name]
    if not functions and choice not in (None, "auto", "none"):
        raise BadRequest(
            "tool_choice: the function is not among tools; add it, or leave out tool_choice",
            param="tool_choice",
        )
    return Offer(functions, choice not in (None, "auto", "none"), parallel is not False)
