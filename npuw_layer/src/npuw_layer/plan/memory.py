"""What lies in the device's memory while a conversation runs, or as many as there are slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from npuw_layer.llm.arena import padded
from npuw_layer.llm.lengths import Lengths
from npuw_layer.llm.stages import Kind, Stage
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.frontends.huggingface.decoder import Decoder

_SCALE_BYTES = 2
_FLOAT_BYTES = {"f16": 2, "bf16": 2, "f32": 4}
_INTEGER_BYTES = 8
_FLOAT = 4


@dataclass(frozen=True, slots=True)
class Item:
    """Something that takes memory."""

    name: str
    nbytes: int


def cache_bytes(decoder: Decoder, lengths: Lengths, options: Options) -> int:
    """K and V of one conversation: as long as the largest variant, which the others share."""
    return _rows_bytes(decoder, lengths.total, options)


def tensor_bytes(decoder: Decoder, stage: Stage, options: Options) -> int:
    """Inputs and outputs of a static model.

    They are ids, positions, mask, and hidden states or logits. New rows are no more than the caches
    have, unless they are copied there.
    """
    if stage.kind is Kind.HEAD:
        return padded(_FLOAT * stage.tokens * decoder.hidden_size) + _logits(decoder, stage.tokens)
    tokens = stage.slots * stage.tokens
    per_token = padded(_INTEGER_BYTES * tokens)
    mask = padded(_INTEGER_BYTES * stage.slots * (stage.past + stage.tokens))
    out = padded(_FLOAT * tokens * decoder.hidden_size)
    if not options.cuts_head:
        out = _logits(decoder, tokens if stage.kind is Kind.GENERATE else 1)
    direct = stage.kind is Kind.PREFILL and options.kv_switchover == "ZERO_COPY"
    rows = 0 if direct else _rows_bytes(decoder, tokens, options)
    return 2 * per_token + mask + out + rows


def _logits(decoder: Decoder, rows: int) -> int:
    return padded(_FLOAT * rows * decoder.vocab_size)


def _rows_bytes(decoder: Decoder, rows: int, options: Options) -> int:
    """K and V of so many tokens, in all layers."""
    heads, width = decoder.attention.key_heads, decoder.attention.head_dim
    if options.kv_cache_precision == "i8":
        one = padded(rows * heads * width) + padded(rows * heads * _SCALE_BYTES)
    else:
        one = padded(rows * heads * width * _FLOAT_BYTES[options.precision])
    return 2 * len(decoder.layers) * one
