"""Calls of functions as models write them, and readers of a growing text that finds them.

The text beside calls is read, too. The chat template chooses the form of calls.

Source: docs/reference/openai.md#calls-of-functions.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from genai_layer.detokenizer import longest_beginning
from genai_layer.errors import ParseError
from genai_layer.parsers.tool_calls import Llama3JsonToolParser
from genai_layer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Form:
    """A call is a JSON object with the entry ``name`` and the arguments, between tags."""

    arguments: str
    """Name of the entry with the arguments."""
    begin: str = ""
    """Tag before a call; without tags, a call is the whole text."""
    end: str = ""


JSON = Form("arguments")
"""Form of calls that only a grammar makes a model write."""
LLAMA = Form("parameters")
HERMES = Form("arguments", "<tool_call>", "</tool_call>")
"""Form of Hermes, Qwen 2.5 and Qwen 3."""


_XML = ("<function=", "<arg_key>")
"""Tags of Qwen3-Coder's and GLM's calls, which stand between HERMES's tags, too."""


def form_of(tokenizer: Tokenizer) -> Form | None:
    """Return the form that a model's chat template teaches it; None if it is not known here."""
    template = tokenizer.chat_template
    if HERMES.begin in template:
        other = any(tag in template for tag in _XML)
        special = {token.content for token in tokenizer.special_tokens.values()}
        return None if other or HERMES.begin in special else HERMES  # those have no text
    if '"name": function name, "parameters":' in template:
        return LLAMA
    return None


def _new_id() -> str:
    return f"call_{secrets.token_hex(12)}"


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a function."""

    name: str
    arguments: str
    """JSON text of an object."""
    id: str = field(default_factory=_new_id)


def read_call(text: str, form: Form, names: Collection[str]) -> Call | None:
    """Return the call that a text is; None if the text is no call of a known function.

    Args:
        text: text between the tags of the form.
        form: form of calls.
        names: known functions.
    """
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    message: dict[str, Any] = {"content": text}
    try:
        Llama3JsonToolParser().parse(message)
    except ParseError:
        return None
    call = cast(dict[str, Any], message["tool_calls"][0])
    name, arguments = call.get("name"), call.get(form.arguments)
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    return Call(name, json.dumps(arguments, ensure_ascii=False))


Part = str | Call
"""Part of an answer: text, which follows earlier text, or a call."""


class Reader(Protocol):
    """Reader of one text."""

    def feed(self, text: str) -> list[Part]:
        """Read more text; return the parts that are certain."""
        ...

    def end(self) -> list[Part]:
        """Return the remaining parts; the text has ended."""
        ...


class PlainReader:
    """Reader that finds no calls; ``Reader``."""

    def feed(self, text: str) -> list[Part]:
        """Return the text."""
        return [text] if text else []

    def end(self) -> list[Part]:
        """Return nothing."""
        return []


class TaggedReader:
    """Reader of calls between tags; ``Reader``. A broken call stays text, with its tags.

    Args:
        form: form of calls, with tags.
        names: known functions.
    """

    def __init__(self, form: Form, names: Collection[str]) -> None:
        self._form = form
        self._names = names
        self._held = ""
        self._gap = ""
        """Space after the text so far; a call that follows drops it."""
        self._called = False

    def feed(self, text: str) -> list[Part]:
        """Read more text; text that may begin a call is held back."""
        self._held += text
        parts: list[Part] = []
        while True:
            before, begin, after = self._held.partition(self._form.begin)
            if not begin:
                certain = len(self._held) - longest_beginning(self._held, [self._form.begin])
                parts += self._text(self._held[:certain])
                self._held = self._held[certain:]
                return parts
            inner, end, rest = after.partition(self._form.end)
            parts += self._text(before)
            if not end:
                self._held = begin + after
                return parts
            call = read_call(inner, self._form, self._names)
            if call is None:
                parts += self._text(begin + inner + end)
            else:
                parts.append(call)
                self._gap, self._called = "", True
            self._held = rest

    def end(self) -> list[Part]:
        """Return the text that was held back."""
        rest, self._held = self._text(self._held), ""
        gap: list[Part] = [self._gap] if self._gap and not self._called else []
        return rest + gap

    def _text(self, text: str) -> list[Part]:
        """Return text up to the space at its end."""
        text = self._gap + text
        kept = text.rstrip()
        self._gap = text[len(kept) :]
        return [kept] if kept else []


class JsonReader:
    """Reader of a call that is the whole text; ``Reader``.

    Args:
        form: form of calls, without tags.
        names: known functions.
    """

    def __init__(self, form: Form, names: Collection[str]) -> None:
        self._form = form
        self._names = names
        self._held = ""
        self._plain = False

    def feed(self, text: str) -> list[Part]:
        """Read more text; hold all of it back if it begins like a call."""
        self._held += text
        start = self._held.lstrip()
        self._plain = self._plain or (bool(start) and not start.startswith("{"))
        if not self._plain or not self._held:
            return []
        certain, self._held = self._held, ""
        return [certain]

    def end(self) -> list[Part]:
        """Return the call, or else the text."""
        rest, self._held = self._held, ""
        call = None if self._plain else read_call(rest, self._form, self._names)
        if call is not None:
            return [call]
        return [rest] if rest else []
