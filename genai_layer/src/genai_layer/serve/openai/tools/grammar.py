"""Grammar of a text with calls of functions."""

from __future__ import annotations

from typing import Any

from genai_layer.serve.errors import BadRequest
from genai_layer.serve.openai.json_grammar import json_grammar
from genai_layer.serve.openai.schemas.tools import Function
from genai_layer.serve.openai.tools.forms import Form
from genai_layer.serve.openai.tools.offer import Offer
from genai_layer.structured.formats import (
    JSONSchema,
    StructuralFormat,
    Tag,
    TagsWithSeparator,
    TriggeredTags,
    Union,
)

_DEFINITIONS = ("$defs", "definitions")
"""Keywords of a root schema that references point to."""


def call_grammar(offer: Offer, form: Form) -> StructuralFormat | None:
    """Return the grammar that an offer needs; None if the model may write any text.

    Args:
        offer: at least one function.
        form: form in which the model writes calls.

    Raises:
        BadRequest: the form has no grammar for free text with strict calls.
    """
    strict = any(one.strict for one in offer.functions)
    if form.begin:
        tags = [_tag(one, form) for one in offer.functions]
        once = not offer.parallel
        if offer.forced:
            return TagsWithSeparator(tags, "\n", at_least_one=True, stop_after_first=once)
        if strict or once:
            return TriggeredTags([form.begin], tags, stop_after_first=once)
        return None
    if offer.forced:
        schemas = [_schema(one, form) for one in offer.functions]
        return schemas[0] if len(schemas) == 1 else Union(schemas)
    if strict:
        raise BadRequest(
            "tools: strict: this model's calls have no tags, so free text cannot be told from "
            "calls; set tool_choice to required, or strict to false",
            param="tools",
        )
    return None


def _tag(function: Function, form: Form) -> Tag:
    return Tag(f"{form.begin}\n", _schema(function, form), f"\n{form.end}")


def _schema(function: Function, form: Form) -> JSONSchema:
    """Return the schema of a call; definitions move to its root, as references expect them."""
    arguments: dict[str, Any] = dict(function.parameters or {"type": "object", "properties": {}})
    moved = {name: arguments.pop(name) for name in _DEFINITIONS if name in arguments}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"name": {"const": function.name}, form.arguments: arguments},
        "required": ["name", form.arguments],
        "additionalProperties": False,
    }
    return json_grammar(schema | moved)
