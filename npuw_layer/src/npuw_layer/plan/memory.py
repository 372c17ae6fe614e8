"""What lies in the device's memory while a conversation runs, or as many as there are slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from npuw_layer.backends.arena import padded
from npuw_layer.llm.plan.lengths import Lengths
from npuw_layer.llm.plan.stages import Kind, Stage, kv_layout
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.frontends.huggingface.decoder import Decoder

_SCALE_BYTES = 2
_FLOAT_BYTES = {"f8e4m3": 1, "f8e5m2": 1, "f16": 2, "bf16": 2, "f32": 4}


@dataclass(frozen=True, slots=True)
class Item:
    """Something that takes memory."""

    name: str
    nbytes: int


def cache_bytes(decoder: Decoder, lengths: Lengths, options: Options) -> int:
    """K and V of one conversation: as long as the largest variant, which the others share.

    In blocks it is all of them, and a dummy in place of those that are not there yet.
    """
    block = kv_layout(options).block
    if block is None:
        return _rows_bytes(decoder, lengths.total, options)
    blocks = -(-lengths.total // block)
    one = _variable_bytes(decoder, block, options)[0]
    return blocks * _rows_bytes(decoder, block, options) + one


def new_row_bytes(decoder: Decoder, stage: Stage, lengths: Lengths, options: Options) -> int:
    """Where a static model puts its new rows of K and V, if they are copied from there.

    What begins at the first row, or behind whole chunks, writes them right into the cache.
    """
    if stage.kind is Kind.HEAD:
        return 0
    in_place = stage.past == 0 or stage.tokens == lengths.prefill_input
    if stage.kind is Kind.PREFILL and in_place and options.writes_in_place:
        return 0
    return _rows_bytes(decoder, stage.slots * stage.tokens, options)


def _rows_bytes(decoder: Decoder, rows: int, options: Options) -> int:
    """K and V of so many tokens, in all layers."""
    return 2 * len(decoder.layers) * sum(_variable_bytes(decoder, rows, options))


def _variable_bytes(decoder: Decoder, rows: int, options: Options) -> tuple[int, int]:
    """One variable of so many tokens, and its scales."""
    heads, width = decoder.attention.key_heads, decoder.attention.head_dim
    if options.kv_element == "i8":
        return padded(rows * heads * width), padded(rows * heads * _SCALE_BYTES)
    element = options.kv_element or options.precision
    return padded(rows * heads * width * _FLOAT_BYTES[element]), 0
