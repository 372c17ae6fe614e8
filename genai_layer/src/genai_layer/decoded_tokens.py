"""Bytes of each token within a text, found by decoding.

A token that is decoded alone may lose a space, as the first or last token of a text does. So each
token is decoded between others, whose texts are cut off. A decoder's text has U+FFFD in place of an
incomplete character; the bytes of such a token follow from its name, if they have the same text.

Source: decoders of the package tokenizers, measured in tests/genai/test_decoded_tokens.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_letters

import tokenizers

from genai_layer.errors import ModelError
from genai_layer.token_names import FALLBACK_TOKENS, byte_level_bytes, unigram_bytes

_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class Frame:
    """Tokens that a token is decoded between."""

    tokens: tuple[int, ...]
    """Ids on either side."""
    head: str
    """Text of these before the token."""
    tail: str
    """Text of these after it."""

    @property
    def plain(self) -> bool:
        """True if decoding puts nothing between tokens."""
        return self.head == self.tail

    def around(self, token: int) -> list[int]:
        """Return the ids of a framed token."""
        return [*self.tokens, token, *self.tokens]

    def cut(self, text: str) -> str | None:
        """Return the token's part of the text of its ids; None if the token changes the frame."""
        end = len(text) - len(self.tail)
        framed = text.startswith(self.head) and text.endswith(self.tail) and end >= len(self.head)
        return text[len(self.head) : end] if framed else None


def find_frame(tokenizer: tokenizers.Tokenizer) -> Frame:
    """Return a frame for the tokens of a tokenizer, a plain one if there is one.

    Raises:
        ModelError: no token has the same text wherever it stands.
    """
    found: Frame | None = None
    for frame in _letters(tokenizer):
        found = found or frame
        if frame.plain:
            return _sensitive(tokenizer, frame)
    if found is None:
        raise ModelError(
            "the tokenizer has no letter with the same text wherever it stands, so tokens have no "
            "bytes of their own; use a model with another tokenizer"
        )
    return found


def _letters(tokenizer: tokenizers.Tokenizer) -> Iterator[Frame]:
    """Yield the frames of tokens that are a letter and have its text."""
    for letter in ascii_letters:
        token = tokenizer.token_to_id(letter)
        if token is not None:
            one, two, three = (_text(tokenizer, [token] * count) for count in (1, 2, 3))
            tail = two[len(one) :]
            if one == letter and tail and three == two + tail:
                yield Frame((token,), one, tail)


def _sensitive(tokenizer: tokenizers.Tokenizer, frame: Frame) -> Frame:
    """Return a frame around a token that decoding changes, if there is one.

    A decoder of the joined text leaves all of it as it is, if one token has a character that stands
    for no byte; a frame of letters has the same text then.
    """
    for token in range(tokenizer.get_vocab_size()):
        name, inner = tokenizer.id_to_token(token), frame.cut(_text(tokenizer, frame.around(token)))
        # Bytes of FALLBACK_TOKENS are decoded together with such bytes beside them.
        if inner and _REPLACEMENT not in inner and name not in (inner, *FALLBACK_TOKENS):
            text = frame.head + inner + frame.tail
            return Frame(tuple(frame.around(token)), text, text)
    return frame


def decoded_bytes(tokenizer: tokenizers.Tokenizer, frame: Frame) -> list[bytes]:
    """Return the bytes of each token in the order of ids, in the middle of a text.

    Ids without a token have none, and tokens that change the text around them.

    Args:
        tokenizer: the tokenizer.
        frame: its frame, from ``find_frame``.
    """
    known = tokenizer.get_vocab(with_added_tokens=True)
    texts = tokenizer.decode_batch(
        [frame.around(token) for token in known.values()], skip_special_tokens=False
    )
    found = [b""] * (max(known.values(), default=-1) + 1)
    for (name, number), text in zip(known.items(), texts, strict=True):
        found[number] = _bytes(name, frame.cut(text) or "")
    return found


def _bytes(name: str, text: str) -> bytes:
    """Return the bytes of a token; none if its text is incomplete and its name has other bytes."""
    if _REPLACEMENT not in text:
        return text.encode()
    options = (byte_level_bytes(name), unigram_bytes(name, fallback=True))
    return next((data for data in options if data.decode(errors="replace") == text), b"")


def _text(tokenizer: tokenizers.Tokenizer, tokens: list[int]) -> str:
    return tokenizer.decode(tokens, skip_special_tokens=False)
