"""What lies in the device's memory while a conversation runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from npuw_layer.llm.arena import padded
from npuw_layer.llm.lengths import Lengths
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.frontends.huggingface.decoder import Decoder
    from npuw_layer.llm.stages import Stage

_SCALE_BYTES = 2
_FLOAT_BYTES = {"f16": 2, "bf16": 2, "f32": 4}
_INTEGER_BYTES = 8
_LOGIT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Item:
    """Something that takes memory."""

    name: str
    nbytes: int


def cache_bytes(decoder: Decoder, lengths: Lengths, options: Options) -> int:
    """K and V of one conversation: as long as the largest variant, which the others share."""
    return _rows_bytes(decoder, lengths.total, options)


def tensor_bytes(decoder: Decoder, stage: Stage, options: Options) -> int:
    """Inputs and outputs of a static model: ids, positions, mask, logits, and rows to store."""
    per_token = padded(_INTEGER_BYTES * stage.tokens)
    mask = padded(_INTEGER_BYTES * (stage.past + stage.tokens))
    logits = padded(_LOGIT_BYTES * decoder.vocab_size)
    return 2 * per_token + mask + logits + _rows_bytes(decoder, stage.tokens, options)


def _rows_bytes(decoder: Decoder, rows: int, options: Options) -> int:
    """K and V of so many tokens, in all layers."""
    heads, width = decoder.attention.key_heads, decoder.attention.head_dim
    if options.kv_cache_precision == "i8":
        one = padded(rows * heads * width) + padded(rows * heads * _SCALE_BYTES)
    else:
        one = padded(rows * heads * width * _FLOAT_BYTES[options.precision])
    return 2 * len(decoder.layers) * one
