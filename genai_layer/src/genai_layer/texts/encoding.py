"""Tokenisation of texts, or pairs of texts, into a batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers

from genai_layer.encoding import Text
from genai_layer.errors import ConfigError, PromptError
from genai_layer.runtime import Array
from genai_layer.texts.config import TextConfig
from genai_layer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """Batch of tokens: arrays i64 [texts, tokens]."""

    ids: Array
    mask: Array
    types: Array
    """Index, in its pair, of the text that a token belongs to."""


class TextEncoder:
    """Encoder of batches according to a configuration.

    Args:
        tokenizer: the model's; it is not changed.
        config: lengths of texts, and the padding side.
        limit: default maximum number of tokens; None for no limit.
    """

    def __init__(self, tokenizer: Tokenizer, config: TextConfig, limit: int | None = None) -> None:
        length = config.max_length or limit
        self._tokenizer = _cutting(tokenizer, length)
        self._padding = max(tokenizer.get_pad_token_id(), 0)
        self.left = (config.padding_side or tokenizer.padding_side) == "left"
        """True if padding precedes the texts."""
        self._width = 0
        if config.pad_to_max_length:
            width = config.max_length or tokenizer.model_max_length
            if width is None:
                raise ConfigError("pad_to_max_length: max_length is not set; set it")
            self._width = width

    def encode(self, texts: Sequence[Text]) -> EncodedTexts:
        """Encode a batch.

        Raises:
            PromptError: the batch is empty, or a text has no tokens.
        """
        if not texts:
            raise PromptError("the list of texts is empty")
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
    """Return a tokenizer without padding that truncates texts, special tokens included."""
    settings = json.loads(tokenizer.to_json())
    cut = {"max_length": length, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    settings |= {"padding": None, "truncation": None if length is None else cut}
    return tokenizers.Tokenizer.from_str(json.dumps(settings))
