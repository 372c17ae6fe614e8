"""Texts, and pairs of them, as a batch of tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers

from genai_layer.errors import ConfigError, PromptError
from genai_layer.runtime import Array
from genai_layer.texts.config import TextConfig
from genai_layer.tokenizer import Tokenizer

Text = str | tuple[str, str]
"""A text, or two that the tokenizer puts together."""


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """A batch: i64 [texts, tokens] each."""

    ids: Array
    mask: Array
    types: Array
    """Which text of a pair a token is of."""


class TextEncoder:
    """Encodes batches as a configuration says.

    Args:
        tokenizer: the model's; it is not changed.
        config: how long texts are, and where padding goes.
        limit: tokens that are left where the configuration does not say; None leaves all.
    """

    def __init__(self, tokenizer: Tokenizer, config: TextConfig, limit: int | None = None) -> None:
        length = config.max_length or limit
        self._tokenizer = _cutting(tokenizer, length)
        self._padding = max(tokenizer.get_pad_token_id(), 0)
        self.left = (config.padding_side or tokenizer.padding_side) == "left"
        """Whether padding is before the texts."""
        self._width = 0
        if config.pad_to_max_length:
            if config.max_length is None:
                raise ConfigError("pad_to_max_length: there is no max_length")
            self._width = config.max_length

    def encode(self, texts: Sequence[Text]) -> EncodedTexts:
        """Encode a batch.

        Raises:
            PromptError: there is no text, or one without tokens.
        """
        if not texts:
            raise PromptError("there are no texts")
        try:
            encoded = self._tokenizer.encode_batch(list(texts))
        except Exception as error:  # the library raises plain Exception
            raise PromptError(f"the texts cannot be cut to max_length: {error}") from error
        for number, one in enumerate(encoded):
            if not one.ids:
                raise PromptError(f"text {number} has no tokens: {texts[number]!r}")
        width = max(self._width, *(len(one.ids) for one in encoded))
        ids = np.full((len(encoded), width), self._padding, np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, one in enumerate(encoded):
            count = len(one.ids)
            place = slice(width - count, None) if self.left else slice(count)
            ids[row, place], mask[row, place], types[row, place] = one.ids, 1, one.type_ids
        return EncodedTexts(ids, mask, types)


def _cutting(tokenizer: Tokenizer, length: int | None) -> tokenizers.Tokenizer:
    """A tokenizer that pads nothing, and leaves so many tokens of a text, special ones as well."""
    settings = json.loads(tokenizer.to_json())
    cut = {"max_length": length, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    settings |= {"padding": None, "truncation": None if length is None else cut}
    return tokenizers.Tokenizer.from_str(json.dumps(settings))
