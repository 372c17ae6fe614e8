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

import pydantic_core

from genai_layer.chat_templates.generic_tools import CALL, END_OF_CALL
from genai_layer.detokenizer import longest_beginning
from genai_layer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Form:
    """A call is a JSON object with the entry ``name`` and the arguments, between tags."""

    arguments: str
    """Name of the entry with the arguments."""
    begin: str = ""
    """Tag before a call; without tags, a call is the whole text."""
    end: str = ""
    guided: bool = False
    """True if a grammar has to enforce the form, which the model was not trained for."""


JSON = Form("arguments")
"""Form of calls that only a grammar makes a model write."""
LLAMA = Form("parameters")
HERMES = Form("arguments", CALL, END_OF_CALL)
"""Form of Hermes, Qwen 2.5 and Qwen 3."""
GENERIC = Form("arguments", CALL, END_OF_CALL, guided=True)
"""Form that a message teaches if the chat template shows no tools."""


_XML = ("<function=", "<arg_key>")
"""Tags of Qwen3-Coder's and GLM's calls, which stand between HERMES's tags, too."""


def form_of(tokenizer: Tokenizer) -> Form | None:
    """Return the form that a model's prompt teaches it; None if it is not known here."""
    if not tokenizer.shows_tools():
        return GENERIC
    template = tokenizer.template_for(True)
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
    try:
        found: object = _from_json(text)
        call = cast(dict[str, Any], found) if isinstance(found, dict) else {}
        name, arguments = call.get("name"), call.get(form.arguments)
        if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
            return None
        return Call(name, json.dumps(arguments, ensure_ascii=False, allow_nan=False))
    except ValueError:  # no JSON, or a number beyond the range of floats
        return None


def _from_json(text: str) -> object:
    """Return a JSON value.

    Raises:
        ValueError: the text is not JSON.
    """
    return pydantic_core.from_json(text, allow_inf_nan=False)


def _json_error(text: str) -> str:
    """Return the reason why a text is no JSON value; empty if it is one."""
    try:
        _from_json(text)
    except ValueError as error:
        return str(error)
    return ""


def _begins_json(text: str) -> bool:
    """Return whether a text is a JSON value, or the beginning of one."""
    error = _json_error(text)
    return not error or error.startswith("EOF while parsing")


Part = str | Call
"""Part of an answer: text, which follows earlier text, or a call."""


class Reader(Protocol):
    """Reader of one text."""

    def feed(self, text: str) -> list[Part]:
        """Read more text; return the parts that are certain."""
        ...

    def end(self, cut: Collection[str]) -> list[Part]:
        """Return the remaining parts of a text that has ended, or is cut.

        Args:
            cut: texts of which one is cut off at the end; the empty text stands for any.
        """
        ...


class PlainReader:
    """Reader that finds no calls; ``Reader``."""

    def feed(self, text: str) -> list[Part]:
        """Return the text."""
        return [text] if text else []

    def end(self, cut: Collection[str]) -> list[Part]:
        """Return nothing."""
        return []


class TaggedReader:
    """Reader of calls between tags; ``Reader``. A broken call stays text, with its tags.

    A call is a begin tag, a JSON value and an end tag: tags in the value's texts are no tags. A
    begin tag without a value is text, and so is a value that is no call of a known function.

    Args:
        form: form of calls, with tags.
        names: known functions.
    """

    def __init__(self, form: Form, names: Collection[str]) -> None:
        self._form = form
        self._names = names
        self._held = ""
        self._inside = 0
        """Place in the held text up to which end tags are a part of the value."""
        self._gap = ""
        """Space after the text so far; a call that follows drops it."""
        self._called = False

    def feed(self, text: str) -> list[Part]:
        """Read more text; text that may begin a call is held back."""
        self._held += text
        return self._read(ended=False)

    def end(self, cut: Collection[str]) -> list[Part]:
        """Return the text that was held back, unless a cut makes it the beginning of a call."""
        if self._held and any(self._begins_call(self._held + text) for text in cut):
            return []
        parts = self._read(ended=True)
        return [*parts, self._gap] if self._gap and not self._called else parts

    def _begins_call(self, text: str) -> bool:
        """Return whether a text begins with a begin tag, or is a part of one."""
        return text.startswith(self._form.begin) or self._form.begin.startswith(text)

    def _read(self, ended: bool) -> list[Part]:
        """Return the parts that are certain, which are all parts if the text has ended."""
        parts: list[Part] = []
        while self._held:
            tagged = self._held.startswith(self._form.begin)
            size = self._size_at_tag(ended) if tagged else self._size_of_text(ended)
            if not size:
                break
            taken, self._held, self._inside = self._held[:size], self._held[size:], 0
            parts += self._call(taken) if tagged else self._text(taken)
        return parts

    def _size_of_text(self, ended: bool) -> int:
        """Return the size of the text before the next begin tag, or before a part of one."""
        at = self._held.find(self._form.begin)
        if at >= 0:
            return at
        return len(self._held) - (0 if ended else self._open_size(self._form.begin))

    def _size_at_tag(self, ended: bool) -> int:
        """Return the size of a value with its tags, or of a tag that is text; 0 if unknown."""
        begin, end = len(self._form.begin), self._form.end
        while (at := self._held.find(end, max(begin, self._inside))) >= 0:
            if not _json_error(self._held[begin:at]):
                return at + len(end)
            if not _begins_json(self._held[begin : at + len(end)]):
                return begin
            self._inside = at + 1
        value = self._held[begin : len(self._held) - self._open_size(end)]
        return begin if ended or not _begins_json(value) else 0

    def _open_size(self, tag: str) -> int:
        """Return the size of the held text's end that may begin a tag."""
        return longest_beginning(self._held, [tag])

    def _call(self, tagged: str) -> list[Part]:
        """Return the call of a value with its tags; else their text."""
        inner = tagged.removeprefix(self._form.begin).removesuffix(self._form.end)
        call = read_call(inner, self._form, self._names)
        if call is None:
            return self._text(tagged)
        self._gap, self._called = "", True
        return [call]

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

    def end(self, cut: Collection[str]) -> list[Part]:
        """Return the call, or else the text, unless a cut leaves the beginning of a call."""
        rest, self._held = self._held, ""
        call = None if self._plain else read_call(rest, self._form, self._names)
        if call is not None:
            return [call]
        begun = any(self._begins_call(rest + text) for text in cut)
        return [rest] if rest and not begun else []

    def _begins_call(self, text: str) -> bool:
        """Return whether a text is the beginning of a call in the order of the form: name first."""
        heads = [f'{{"name":"{name}"' for name in self._names]
        begin = "".join(text.split())
        return any(head.startswith(begin[: len(head)]) for head in heads)
