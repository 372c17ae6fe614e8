"""Chat templates: messages rendered as a prompt, as Hugging Face renders them.

A template comes with a model and is untrusted: it runs in jinja2's sandbox, cannot change its
variables, and its output is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from genai_layer.chat_templates.lines import line_of
from genai_layer.errors import TemplateError

MAX_CHARACTERS = 4 << 20
"""A limit above any context length; a template that writes more is broken or hostile."""


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


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON as it stands, unlike jinja2's own filter, which escapes HTML.

    Source: tojson of transformers' chat templates, whose parameters these are.
    """
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


@cache
def _environment() -> _Environment:
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
    )
    environment.filters["tojson"] = _tojson
    return environment


@lru_cache(maxsize=8)
def _compile(source: str) -> jinja2.Template:
    return _environment().from_string(source)


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
    try:
        text = _bounded(_compile(source).generate(given))
    except TemplateError:
        raise
    except (RecursionError, MemoryError) as error:
        name, place = type(error).__name__, _place(error, source)
        raise TemplateError(f"the chat template{place} exceeds limits: {name}") from error
    except Exception as error:  # a template calls methods of texts, lists and filters at will
        raise TemplateError(
            f"the chat template{_place(error, source)} fails on these messages: {_reason(error)}",
            "pass another with set_chat_template, or apply_chat_template=False",
        ) from error
    if not text:
        raise TemplateError("the chat template renders an empty prompt for these messages")
    return text


def _bounded(parts: Iterable[str]) -> str:
    """Join the parts of a text.

    Raises:
        TemplateError: the text is too long.
    """
    kept: list[str] = []
    size = 0
    for part in parts:
        kept.append(part)
        size += len(part)
        if size > MAX_CHARACTERS:
            raise TemplateError(f"the chat template writes over {MAX_CHARACTERS} characters")
    return "".join(kept)


def _place(error: Exception, source: str) -> str:
    """Return the line of an error in the template, as a part of a message."""
    line = line_of(error, source, _environment())
    return "" if line is None else f", line {line},"


def _reason(error: Exception) -> str:
    """Return what an error says; the names of Python's own errors are a part of it."""
    if isinstance(error, jinja2.TemplateError):
        return str(error)
    # A SyntaxError's own text adds a line of the code that jinja2 generated.
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}"
