"""Incremental detokenizer, and stop strings found in the text, however it was tokenised.

The detokenizer returns text that no later token changes: a text may end with the first bytes of a
character, or with a space that decoding removes before the next punctuation mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

REPLACEMENT = "\ufffd"
"""The decoders' character for bytes that are no complete character."""


@runtime_checkable
class Decodes(Protocol):
    """Decoder from ids to text, e.g. a Tokenizer."""

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of ids."""
        ...


class TextDecoder:
    """Callable that returns the text of ids.

    Args:
        tokenizer: a Tokenizer, which then does not check the kind of each argument, or another.
        skip_special_tokens: whether special tokens have no text.
    """

    def __init__(self, tokenizer: Decodes, skip_special_tokens: bool = True) -> None:
        self._decode: Callable[..., str] = getattr(tokenizer, "text_of", tokenizer.decode)
        self._skip = skip_special_tokens
        self.unsettled: tuple[str, ...] = getattr(tokenizer, "unsettled", ())
        """Strings that decoding changes: a text that ends with a part of one may change."""

    def __call__(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return self._decode(ids, skip_special_tokens=self._skip)


class Detokenizer:
    """Decoder of a growing list of ids; the returned texts joined are the complete text.

    How it works. Text that is complete stays; only the ids after it are decoded again, together
    with those of the last text, because decoders join words differently at the beginning of a
    text.

    Args:
        decode: returns the text of ids; a TextDecoder, unless no token changes the text before it.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._unsettled = decode.unsettled if isinstance(decode, TextDecoder) else ()
        self._ids: list[int] = []
        self._context = 0
        self._done = 0

    def add(self, token: int) -> str:
        """Add an id; return the text that it completes, often none."""
        self._ids.append(token)
        known = self._decode(self._ids[self._context : self._done])
        text = self._decode(self._ids[self._context :])
        if text.endswith(REPLACEMENT) or len(text) <= len(known):
            return ""
        if longest_beginning(text, self._unsettled):
            return ""
        began, self._done = self._done, len(self._ids)
        if not self._unsettled or self._is_settled(self._ids[began:]):
            self._context = began
        return text[len(known) :]

    def _is_settled(self, ids: list[int]) -> bool:
        """Return whether these ids alone, without the ids before them, have a settled text."""
        return not longest_beginning(self._decode(ids), self._unsettled)

    def fork(self) -> Self:
        """Return a copy that grows on its own."""
        forked = copy(self)
        forked._ids = list(self._ids)
        return forked

    def flush(self) -> str:
        """Return the remaining text, with broken characters replaced."""
        known = self._decode(self._ids[self._context : self._done])
        text = self._decode(self._ids[self._context :])
        self._context, self._done = self._done, len(self._ids)
        return text[len(known) :]


@dataclass(slots=True)
class StopStrings:
    """Search for stop strings in a growing text; text that may begin one is held back.

    Args:
        stop_strings: the strings to find; none is empty.
        include: whether the result ends after the stop string, or before it.
    """

    stop_strings: tuple[str, ...]
    include: bool
    found: bool = False
    _held: str = ""

    def feed(self, text: str) -> str:
        """Add text; return the text that certainly belongs to the result."""
        if self.found:
            return ""
        self._held += text
        match = _first_match(self._held, self.stop_strings)
        if match is not None:
            self.found = True
            begin, end = match
            result, self._held = self._held[: end if self.include else begin], ""
            return result
        keep = longest_beginning(self._held, self.stop_strings)
        certain = len(self._held) - keep
        result, self._held = self._held[:certain], self._held[certain:]
        return result

    def flush(self) -> str:
        """Return the text held back, as no text follows."""
        result, self._held = self._held, ""
        return result


def _first_match(text: str, stop_strings: Iterable[str]) -> tuple[int, int] | None:
    """Return the range of the stop string that is complete first; of several, the longest."""
    matches = [
        (begin + len(stop), begin) for stop in stop_strings if (begin := text.find(stop)) >= 0
    ]
    if not matches:
        return None
    end, begin = min(matches)
    return begin, end


def longest_beginning(text: str, stop_strings: Iterable[str]) -> int:
    """Return the length of the longest end of the text that begins a stop string."""
    return max(
        (
            size
            for stop in stop_strings
            for size in range(1, min(len(stop), len(text) + 1))
            if text.endswith(stop[:size])
        ),
        default=0,
    )
