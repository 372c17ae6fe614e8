"""Token ids of texts and pairs of texts, truncated and padded to a batch.

Source: openvino_genai.Tokenizer.encode, docs/reference/genai.md#encoding; the truncation of pairs
is that of openvino_tokenizers: the longer text first, and of equally long ones the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers

from genai_layer.encode_call import Text
from genai_layer.errors import ConfigError
from genai_layer.results import TokenizedInputs


@dataclass(frozen=True, slots=True)
class Truncation:
    """Maximum number of tokens, special tokens included, and the side that is cut."""

    length: int
    side: str


@dataclass(frozen=True, slots=True)
class Padding:
    """Minimum number of columns, the side of padding, and its id."""

    width: int
    left: bool
    token: int


def encode_rows(
    tokenizer: tokenizers.Tokenizer,
    texts: Sequence[Text],
    add_special_tokens: bool,
    truncation: Truncation | None,
) -> list[list[int]]:
    """Return the ids of each text.

    Raises:
        ConfigError: the special tokens alone are longer than the truncation allows.
    """
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=add_special_tokens)
    rows = [one.ids for one in encoded]
    if truncation is None:
        return rows
    return [
        row
        if len(row) <= truncation.length
        else _truncated(tokenizer, text, add_special_tokens, truncation)
        for row, text in zip(rows, texts, strict=True)
    ]


def padded(rows: Sequence[Sequence[int]], padding: Padding) -> TokenizedInputs:
    """Return a batch of rows, padded to the longest or to the padding's width."""
    width = max([padding.width, *map(len, rows)])
    ids = np.full((len(rows), width), padding.token, np.int64)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        place = slice(width - len(row), None) if padding.left else slice(len(row))
        ids[number, place], mask[number, place] = row, 1
    return TokenizedInputs(ids, mask)


def _truncated(
    tokenizer: tokenizers.Tokenizer, text: Text, add_special_tokens: bool, truncation: Truncation
) -> list[int]:
    parts = [text] if isinstance(text, str) else list(text)
    special = tokenizer.num_special_tokens_to_add(len(parts) == 2) if add_special_tokens else 0
    room = truncation.length - special
    if room < 0:
        raise ConfigError(
            f"max_length={truncation.length}: the tokenizer adds {special} special tokens; "
            "raise max_length"
        )
    encoded = [tokenizer.encode(part, add_special_tokens=False) for part in parts]
    for one, length in zip(encoded, _lengths([len(one.ids) for one in encoded], room), strict=True):
        one.truncate(length, direction=truncation.side)
    return tokenizer.post_process(*encoded, add_special_tokens=add_special_tokens).ids


def _lengths(lengths: Sequence[int], room: int) -> list[int]:
    """Return the lengths of texts that share the room; the longer one of a pair is cut first."""
    if len(lengths) == 1:
        return [min(lengths[0], room)]
    short, long = sorted(lengths)
    long = min(long, max(short, room - short))
    if short + long > room:
        short, long = room // 2, room - room // 2
    return [short, long] if lengths[0] < lengths[1] else [long, short]
