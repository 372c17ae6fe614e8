"""Device memory of a running conversation, or of one conversation for each slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from npuw_layer.llm.kv.cache_size import CacheSize
from npuw_layer.llm.kv.row_layouts import RowLayout
from npuw_layer.llm.plan.lengths import Lengths
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.tensors.names import SCALE_ELEMENT

if TYPE_CHECKING:
    from compiler_layer.frontends.huggingface.decoder import Decoder


@dataclass(frozen=True, slots=True)
class Item:
    """A part of the device memory."""

    name: str
    nbytes: int


def cache_size(decoder: Decoder, options: Options) -> CacheSize:
    """Return the size of K and V of one conversation, and of their scales."""
    heads, width = decoder.attention.key_heads, decoder.attention.head_dim
    element, count = options.kv_element, 2 * len(decoder.layers)
    found = {RowLayout(element or options.precision, heads, width, False): count}
    if element == "i8":
        found[RowLayout(SCALE_ELEMENT, heads, 1, False)] = count
    return CacheSize(found)


def new_row_bytes(size: CacheSize, stage: Stage, lengths: Lengths, options: Options) -> int:
    """Return the bytes of a static model's new rows of K and V; 0 if written in place.

    Stages that begin at the first row, or behind whole chunks, write directly into the cache.
    """
    if stage.kind is StageKind.HEAD:
        return 0
    in_place = stage.past == 0 or stage.tokens == lengths.prefill_input
    if stage.kind is StageKind.PREFILL and in_place and options.writes_in_place:
        return 0
    return size.nbytes(stage.slots * stage.tokens, None)
