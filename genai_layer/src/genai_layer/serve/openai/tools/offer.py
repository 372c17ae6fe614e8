"""Functions that a request offers to the model, and the grammar of a text with calls of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from genai_layer.errors import ConfigError
from genai_layer.grammars.compiler import grammar_of
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.openai.formats import json_grammar
from genai_layer.serve.openai.schemas.tools import Choice, Function, NamedFunction
from genai_layer.serve.openai.tools.calls import Form
from genai_layer.structured.config import StructuredOutputConfig
from genai_layer.structured.formats import (
    Concat,
    ConstString,
    StructuralFormat,
    Tag,
    TagsWithSeparator,
    TriggeredTags,
    Union,
)


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
        parallel = False
    if not functions and choice not in (None, "auto", "none"):
        missing = "no function is" if choice == "required" else f"{choice.name} is not"
        raise BadRequest(
            f"tool_choice: {missing} among tools; add it, or leave out tool_choice",
            param="tool_choice",
        )
    return Offer(functions, choice not in (None, "auto", "none"), parallel is not False)


def call_grammar(
    offer: Offer, form: Form, text: StructuralFormat | None
) -> StructuralFormat | None:
    """Return the grammar that an offer needs; None if the model may write any text.

    Args:
        offer: at least one function.
        form: form in which the model writes calls.
        text: grammar of an answer that is no call; None for any text, also beside calls.

    Raises:
        BadRequest: the form has no grammar for free text with strict calls, or the parameters of a
            function are no schema that a grammar can follow.
    """
    if offer.forced:
        return _calls(offer, form)
    if text is not None:
        return _calls(offer, form) | text
    strict = any(one.strict for one in offer.functions)
    if form.begin:
        tags, once = _tags(offer, form), not offer.parallel
        guided = strict or once or form.guided
        return TriggeredTags([form.begin], tags, stop_after_first=once) if guided else None
    if strict:
        raise BadRequest(
            "tools: strict: this model's calls have no tags, so free text cannot be told from "
            "calls; set tool_choice to required, or strict to false",
            param="tools",
        )
    return None


def _calls(offer: Offer, form: Form) -> StructuralFormat:
    """Return the grammar of a text of calls alone."""
    if form.begin:
        tags, once = _tags(offer, form), not offer.parallel
        return TagsWithSeparator(tags, "\n", at_least_one=True, stop_after_first=once)
    texts = [_text(one, form) for one in offer.functions]
    return texts[0] if len(texts) == 1 else Union(texts)


def _tags(offer: Offer, form: Form) -> list[Tag]:
    begin, end = f"{form.begin}\n", f"\n{form.end}"
    return [Tag(begin, _text(one, form), end) for one in offer.functions]


def _text(function: Function, form: Form) -> Concat:
    """Return the format of a call; its parameters stay a schema whose references are its own."""
    begin = f'{{"name": "{function.name}", "{form.arguments}": '
    parameters = function.parameters or {"type": "object", "properties": {}}
    grammar = json_grammar(parameters)
    try:
        grammar_of(StructuredOutputConfig(structural_tags_config=grammar))
    except ConfigError as error:
        reason = str(error).partition(": ")[2]
        raise BadRequest(f"tools: {function.name}: parameters: {reason}", param="tools") from error
    return Concat(ConstString(begin), grammar, ConstString("}"))
