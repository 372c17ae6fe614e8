"""Encoding of texts and pairs of texts: arguments of ``Tokenizer.encode``, which has several forms.

The token ids are truncated and padded to a batch.

Source: openvino_genai.Tokenizer.encode, docs/reference/genai.md#encoding; the truncation of pairs
is that of openvino_tokenizers: the longer text first, and of equally long ones the second. Ours:
unknown names raise a ConfigError.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_type_hints

import numpy as np
import tokenizers

from genai_layer.checked import read_as, read_named
from genai_layer.errors import ConfigError, PromptError
from genai_layer.kinds import Unsigned
from genai_layer.long_texts import Text, encode_texts
from genai_layer.results import TokenizedInputs

_FIRST = ("prompts", "prompt", "prompts_1")
_SECOND = "prompts_2"
_OWNER = "Tokenizer.encode"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeOptions:
    """Options of one call."""

    add_special_tokens: bool = True
    pad_to_max_length: bool = False
    max_length: Unsigned | None = None
    """Length for ``pad_to_max_length`` and ``truncation``; None for the model's own."""
    padding_side: Literal["left", "right"] | None = None
    """Padding side; None for the model's own."""
    truncation: bool = False


_OPTIONS = tuple(field.name for field in fields(EncodeOptions))


def read_call(args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Text], EncodeOptions]:
    """Return the texts and options of a call.

    Args:
        args: the texts; if they are a list, possibly the second texts of pairs; options in order.
        named: the same by name: prompt, prompts or prompts_1; prompts_2; options.

    Raises:
        ConfigError: a name is unknown, repeated or missing.
        ArgumentError: texts are not strings, or not pairs; or an option is of another kind.
        PromptError: a text has a lone surrogate.
    """
    values, options = list(args), dict(named)
    for name in options:
        if name not in (*_FIRST, _SECOND, *_OPTIONS):
            near = difflib.get_close_matches(name, _OPTIONS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"encode has no parameter {name!r}{hint}")
    given = [options.pop(name) for name in _FIRST if name in options]
    first = [values.pop(0)] if values else []
    if len(first) + len(given) != 1:
        raise ConfigError("encode needs the texts once; pass prompt or prompts")
    (prompts,) = first + given
    second = options.pop(_SECOND, None)
    if values and isinstance(values[0], list | tuple):
        second = values.pop(0)
    positional = dict(zip(_OPTIONS, values, strict=False))
    if len(values) > len(_OPTIONS) or positional.keys() & options.keys():
        raise ConfigError("encode has parameters twice; pass each once")
    texts = _texts(prompts) if second is None else _broadcast(prompts, second)
    check_texts(texts)
    hints = get_type_hints(EncodeOptions, include_extras=True)
    return texts, EncodeOptions(**read_named(_OWNER, positional | options, hints))


def _texts(prompts: object) -> list[Text]:
    """Return texts or pairs as a list."""
    read = read_as(f"{_OWNER}: prompts", prompts, str | list[str] | list[tuple[str, str]])
    return [read] if isinstance(read, str) else read


def _broadcast(first: object, second: object) -> list[Text]:
    """Return the pairs of two lists, of which one may have a single text for all of the other."""
    given = {"prompts_1": first, _SECOND: second}
    one, two = read_named(_OWNER, given, dict.fromkeys(given, list[str])).values()
    if len(one) != len(two) and 1 not in (len(one), len(two)):
        raise PromptError(
            f"prompts_1 has {len(one)} texts, prompts_2 has {len(two)}; pass as many, or one text"
        )
    count = max(len(one), len(two)) if one and two else 0
    one, two = (texts * count if len(texts) == 1 else texts for texts in (one, two))
    return [*zip(one, two, strict=True)]


def check_texts(texts: Sequence[Text]) -> None:
    """Reject texts and pairs that cannot be encoded in UTF-8."""
    for text in texts:
        for part in (text,) if isinstance(text, str) else text:
            check_characters(part)


def check_characters(text: str) -> None:
    """Reject a text that cannot be encoded in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(
            f"character {error.start} of a text is {text[error.start]!r}, a lone surrogate; "
            "pass text in UTF-8"
        ) from None


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
        CancelledError, GenAIError: see ``encode_texts``.
    """
    rows = encode_texts(tokenizer, texts, add_special_tokens)
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
