"""Device memory of a running conversation, or of one conversation for each slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from npuw_layer.backends.arena import padded
from npuw_layer.llm.plan.lengths import Lengths
from npuw_layer.llm.plan.stages import Stage, StageKind, kv_layout
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.frontends.huggingface.decoder import Decoder

_SCALE_BYTES = 2
_FLOAT_BYTES = {"f8e4m3": 1, "f8e5m2": 1, "f16": 2, "bf16": 2, "f32": 4}


@dataclass(frozen=True, slots=True)
class Item:
    """A part of the device memory."""

    name: str
    nbytes: int


def cache_bytes(decoder: Decoder, lengths: Lengths, options: Options) -> int:
    """Return the bytes of K and V of one conversation, for the largest variant; others share them.

    With blocks, this is the size of all blocks, and of a dummy for blocks not yet allocated.
    """
    block = kv_layout(options).block
    if block is None:
        return _rows_bytes(decoder, lengths.total, options)
    blocks = -(-lengths.total // block)
    one = _variable_bytes(decoder, block, options)[0]
    return blocks * _rows_bytes(decoder, block, options) + one


def new_row_bytes(decoder: Decoder, stage: Stage, lengths: Lengths, options: Options) -> int:
    """Return the bytes of a static model's new rows of K and V; 0 if written in place.

    Stages that begin at the first row, or behind whole chunks, write directly into the cache.
    """
    if stage.kind is StageKind.HEAD:
        return 0
    in_place = stage.past == 0 or stage.tokens == lengths.prefill_input
    if stage.kind is StageKind.PREFILL and in_place and options.writes_in_place:
        return 0
    return _rows_bytes(decoder, stage.slots * stage.tokens, options)


def _rows_bytes(decoder: Decoder, rows: int, options: Options) -> int:
    """Return the bytes of K and V of some tokens, in all layers."""
    return 2 * len(decoder.layers) * sum(_variable_bytes(decoder, rows, options))


def _variable_bytes(decoder: Decoder, rows: int, options: Options) -> tuple[int, int]:
    """Return the bytes of one variable of some tokens, and of its scales."""
    heads, width = decoder.attention.key_heads, decoder.attention.head_dim
    if options.kv_element == "i8":
        return padded(rows * heads * width), padded(rows * heads * _SCALE_BYTES)
    element = options.kv_element or options.precision
    return padded(rows * heads * width * _FLOAT_BYTES[element]), 0
