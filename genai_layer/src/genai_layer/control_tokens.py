"""Encoding of texts in which only some of the special tokens are tokens; the others are text.

openvino_genai has no such encoding.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence

import tokenizers
from tokenizers import AddedToken

from genai_layer.errors import PromptError

Span = tuple[int, int]
"""Begin and end in a text."""


class ControlTokens:
    """Special tokens of a tokenizer, with an encoder for the chosen ones of a text.

    How it works. A copy of the tokenizer reads special tokens as text, and knows each of them under
    an alias that nobody can guess. The chosen ones are replaced by their aliases before encoding.

    Args:
        tokens: the special tokens by id.
        to_json: returns the content of tokenizer.json; called at the first use of ``encode``.
    """

    def __init__(self, tokens: Mapping[int, AddedToken], to_json: Callable[[], str]) -> None:
        self._tokens = {token.content: token for token in tokens.values() if token.content}
        self._ids = {token.content: number for number, token in tokens.items()}
        self._to_json = to_json
        self._copy: _Copy | None = None
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        """Pattern of a special token; of several at one place, the longest."""

    @property
    def first_characters(self) -> str:
        """Characters that begin special tokens."""
        return "".join({content[0] for content in self._tokens})

    def spans(self, text: str) -> list[Span]:
        """Return where a text has special tokens."""
        return [found.span() for found in self.pattern.finditer(text)]

    def encode(self, text: str, chosen: Sequence[Span]) -> list[int]:
        """Return a text's ids, in which only the chosen special tokens are tokens.

        Args:
            text: a text with special tokens.
            chosen: some of ``spans(text)``, in their order.

        Raises:
            PromptError: the vocabulary has another special token of the text as a word.
        """
        self._copy = self._copy or _Copy(self._to_json(), self._tokens)
        renamed: list[str] = []
        at = 0
        for begin, end in chosen:
            renamed += text[at:begin], self._copy.aliases[text[begin:end]]
            at = end
        ids = self._copy.encode("".join(renamed) + text[at:])
        for begin, end in set(self.spans(text)) - set(chosen):
            if self._ids[text[begin:end]] in ids:
                raise PromptError(
                    f"a message has {text[begin:end]!r}, a special token that is a word of this "
                    "vocabulary, too; remove it from the message"
                )
        return [self._ids.get(self._copy.names.get(one, ""), one) for one in ids]


class _Copy:
    """Copy of a tokenizer that reads special tokens as text, and their aliases as tokens."""

    def __init__(self, json: str, tokens: Mapping[str, AddedToken]) -> None:
        secret = secrets.token_hex(16)
        self.aliases = {name: f"\U0010fffd{secret}.{at}." for at, name in enumerate(tokens)}
        self._tokenizer = tokenizers.Tokenizer.from_str(json)
        self._tokenizer.encode_special_tokens = True
        add: Callable[[list[AddedToken]], int] = self._tokenizer.add_tokens  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] (its list has no element type)
        add([_renamed(tokens[name], alias) for name, alias in self.aliases.items()])
        self.names = {
            self._tokenizer.token_to_id(alias): name for name, alias in self.aliases.items()
        }
        """Special tokens by the ids of their aliases."""

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids


def _renamed(token: AddedToken, content: str) -> AddedToken:
    return AddedToken(
        content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=token.normalized,
    )
