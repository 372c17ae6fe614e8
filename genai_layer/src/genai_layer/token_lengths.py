"""Minimum number of a text's tokens by its characters, so that long texts are rejected unread.

How it works. A token stands for at most as many characters as its own text has, if the tokenizer
keeps every character: no step removes characters, and each byte has a token, so that no unknown
token stands for several. Composition (NFC) joins at most four characters, and none of ASCII.

Source: tokenizers' normalizers, pre-tokenizers and models; Unicode's canonical decompositions.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from typing import Any

import tokenizers

from genai_layer.token_names import FALLBACK_TOKENS, byte_level_token

_Step = dict[str, Any]
"""Description of a normalizer or pre-tokenizer, as in tokenizer.json."""

_KEEPING = {"NFD", "NFKD", "Lowercase", "Prepend", "ByteLevel", "Digits", "Metaspace"}
"""Types of steps that make one or more characters of each."""
_COMPOSING = {"NFC", "NFKC"}
_COMPOSED = 4
"""Maximum number of characters that composition joins."""

_BYTE_LEVEL_TOKENS = [byte_level_token(bytes([byte])) for byte in range(256)]


def longest_token(tokenizer: tokenizers.Tokenizer) -> int | None:
    """Return the maximum number of a text's characters in a token; None if there is none."""
    added = tokenizer.get_added_tokens_decoder().values()
    if any(token.lstrip or token.rstrip for token in added):
        return None  # such a token stands for all spaces beside it, too
    steps = [*_steps(tokenizer.normalizer), *_steps(tokenizer.pre_tokenizer)]
    rest = steps[1:] if steps and steps[0]["type"] in _COMPOSING else steps
    known = tokenizer.get_vocab(with_added_tokens=True)
    if not all(map(_keeps, rest)) or not _knows_bytes(tokenizer.model, steps, known):
        return None
    return max(map(len, known))


def least_tokens(text: str, longest: int | None) -> int:
    """Return the minimum number of a text's tokens.

    Args:
        text: the text.
        longest: see ``longest_token``.
    """
    if longest is None:
        return 0
    return -(-len(text) // (longest if text.isascii() else longest * _COMPOSED))


def _steps(part: Any) -> Iterator[_Step]:
    """Yield the steps of a normalizer or pre-tokenizer."""
    if part is not None:
        yield from _flat(json.loads(part.__getstate__()))


def _flat(step: _Step) -> Iterator[_Step]:
    if step["type"] != "Sequence":
        yield step
    for inner in step.get("normalizers", step.get("pretokenizers", ())):
        yield from _flat(inner)


def _keeps(step: _Step) -> bool:
    """Return whether a step keeps every character."""
    if step["type"] in ("Split", "Punctuation"):
        return step["behavior"] != "Removed"
    if step["type"] == "Replace":
        return len(step["pattern"].get("String", "")) == 1 and step["content"] != ""
    return step["type"] in _KEEPING


def _knows_bytes(model: object, steps: Sequence[_Step], known: Container[str]) -> bool:
    """Return whether each byte has a token."""
    if any(step["type"] == "ByteLevel" for step in steps):
        return all(token in known for token in _BYTE_LEVEL_TOKENS)
    fallback = getattr(model, "byte_fallback", False)
    return fallback and all(token in known for token in FALLBACK_TOKENS)
