"""Chat templates: messages rendered as a prompt, as Hugging Face renders them.

A template comes with a model and is untrusted: it runs in jinja2's sandbox, cannot change its
variables, and its output is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from genai_layer.errors import TemplateError

MAX_CHARACTERS = 4 << 20
"""A limit above any context length; a template that writes more is broken or hostile."""

_MAX_RANGE = 100_000


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox; jinja2 itself bounds its ``range`` to 100,000."""


class _Generation(Extension):
    """The tag by which training marks the assistant's words: its body is rendered unchanged.

    Source: AssistantTracker of transformers' chat templates, which Phi-4-reasoning's uses.
    """

    tags = {"generation"}  # noqa: RUF012 (jinja2's own form)

    def parse(self, parser: Parser) -> nodes.Node:
        """Parse up to endgeneration; variables set inside stay inside."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


@lru_cache(maxsize=8)
def _compile(source: str) -> jinja2.Template:
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
    )
    environment.filters["tojson"] = _tojson
    return environment.from_string(source)


def render(
    source: str,
    messages: Sequence[Mapping[str, Any]],
    add_generation_prompt: bool,
    variables: Mapping[str, Any],
) -> str:
    """Render a template.

    Args:
        source: a jinja2 template.
        messages: the conversation; each message has a role and content.
        add_generation_prompt: end with the beginning of the assistant's turn.
        variables: further template variables: special tokens, tools …

    Raises:
        TemplateError: the template fails, writes nothing, or writes too much.
    """
    given = {
        **variables,
        "messages": messages,
        "add_generation_prompt": add_generation_prompt,
        "raise_exception": _raise_exception,
        "strftime_now": _strftime_now,
    }
    pieces: list[str] = []
    size = 0
    try:
        for piece in _compile(source).generate(given):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_CHARACTERS:
                raise TemplateError(f"the chat template writes over {MAX_CHARACTERS} characters")
    except (jinja2.TemplateError, TypeError, ValueError, KeyError, ArithmeticError) as error:
        raise TemplateError(
            f"the chat template fails on these messages: {error}; pass another with "
            "set_chat_template, or apply_chat_template=False"
        ) from error
    except (RecursionError, MemoryError, OverflowError) as error:
        raise TemplateError(f"the chat template exceeds limits: {type(error).__name__}") from error
    if not size:
        raise TemplateError("the chat template renders an empty prompt for these messages")
    return "".join(pieces)
