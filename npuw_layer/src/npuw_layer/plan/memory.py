"""Device memory of a running model: weights by use, and caches of its conversations."""

from __future__ import annotations

import math
from dataclasses import dataclass

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.constant_value import FileAttr
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.elements import FOUR_BIT
from compiler_layer.files import FileView
from compiler_layer.frontends.huggingface.decoder import Decoder, ModuleNames
from compiler_layer.frontends.huggingface.sample import Sample
from npuw_layer.llm.kv.row_layouts import CacheSize, RowLayout
from npuw_layer.llm.plan.lengths import Lengths
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.tensors.names import SCALE_ELEMENT

EMBEDDING = "embedding"
HEAD = "head"
SCALES = "scales and zero points"
NORMS = "norms and biases"

ORDER: tuple[str, ...] = (EMBEDDING, "attention", "feed-forward", HEAD, NORMS, SCALES)


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

    Stages of one conversation that begin at the first row, or behind whole chunks, write directly
    into the cache.
    """
    if stage.kind is StageKind.HEAD:
        return 0
    in_place = stage.past == 0 or stage.tokens == lengths.prefill_input
    alone = stage.kind is StageKind.PREFILL and stage.slots == 1
    if alone and in_place and options.writes_in_place:
        return 0
    return size.nbytes(stage.slots * stage.tokens, None)


def weigh(sample: Sample) -> list[Item]:
    """Sum up the memory of the weights of all layers that a sample stands for, as stored."""
    sizes: dict[str, int] = dict.fromkeys(ORDER, 0)
    for name, view, elements in _stored(sample):
        use = _use(sample.decoder.names, name)
        # Programs read 4-bit zero points as bytes (``widen-nibbles``).
        widened = use == SCALES and view.element in FOUR_BIT
        sizes[use] += (elements if widened else view.size) * _count(sample, name)
    return [Item(use, size) for use, size in sizes.items() if size]


def count_parameters(sample: Sample) -> int:
    """Return the number of learned parameters; call it before the sample is quantised."""
    return sum(count * _count(sample, name) for name, _, count in _stored(sample))


def _stored(sample: Sample) -> list[tuple[str, FileView, int]]:
    """Return name, place and elements of each weight, without duplicates."""
    found: dict[FileView, tuple[str, FileView, int]] = {}
    for op in sample.model.body.ops:
        if isinstance(op, Constant) and isinstance(op.value, FileAttr):
            elements = math.prod(shape_of(op.output))
            name = op.friendly_name.removesuffix("_compressed")
            found.setdefault(op.value.data, (name, op.value.data, elements))
    return list(found.values())


def _count(sample: Sample, name: str) -> int:
    """Return the number of the model's weights that a weight of the sample stands for."""
    layer = sample.layer_of(name)
    inside = layer is not None and layer < len(sample.counts)
    return sample.counts[layer] if inside and layer is not None else 1


def _use(names: ModuleNames, name: str) -> str:
    """Return the use of a weight, by its module."""
    if name.endswith(("/scale", "/zero_point")):
        return SCALES
    module, _, kind = name.rpartition(".")
    uses = {
        EMBEDDING: (names.embedding, names.positions),
        "attention": (*names.qkv, names.output),
        "feed-forward": (*names.up, names.down),
        HEAD: (names.head,),
    }
    for use, modules in uses.items():
        if kind == "weight" and any(each and f".{module}".endswith(f".{each}") for each in modules):
            return use
    return NORMS
