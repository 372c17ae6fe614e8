"""Readers of a growing text: calls of functions, and the text beside them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from genai_layer.serve.openai.tools.call import Call, read_call
from genai_layer.serve.openai.tools.forms import Form

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
                certain = len(self._held) - _overlap(self._held, self._form.begin)
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


def _overlap(text: str, tag: str) -> int:
    """Return the length of the longest end of the text that begins the tag."""
    sizes = range(min(len(text), len(tag) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(tag[:size])), 0)
