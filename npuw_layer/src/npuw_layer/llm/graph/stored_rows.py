"""Reads and stores of K and V rows in a static model: plain, or as 8-bit integers.

Float types other than that of activations are in ``stored_floats``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Transpose
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.state import Assign, ReadValue, keep_type
from compiler_layer.dialects.ov.types import Shape, element_of, tensor
from compiler_layer.model import Model
from compiler_layer.quantize.rows import quantize_rows
from npuw_layer.llm.kv.kv_layout import RowRange
from npuw_layer.tensors.names import SCALE_ELEMENT, slot_variable, transposed_variable

SCALE_SUFFIX = ".scale"
"""Suffix of the id of the variable that holds the scales of an 8-bit cache."""

_TOKEN_MAJOR = (0, 2, 1, 3)

_TRANSPOSED, _FROM_TRANSPOSED = (0, 2, 3, 1), (0, 3, 1, 2)
"""Transpositions from token by token to channel by channel, and back."""


@dataclass(frozen=True, slots=True)
class StoredCache:
    """One K or V cache of the stateful graph, and its static shape [1, past, heads, width]."""

    read: ReadValue
    assign: Assign
    new: SSAValue
    """New rows, [1, heads, tokens, width]."""
    shape: Shape
    slots: int = 1
    """Number of conversations, each with its own cache; their rows are joined to a batch."""
    spans: tuple[RowRange, ...] = ()
    """Ranges of rows in which the past is read."""
    room: int | None = None
    """Rows of the buffer if the cache is transposed, so that a read takes a part of each
    channel."""
    keeps_type: bool = False
    """True if the cache stays f32, regardless of the type of activations."""

    @property
    def name(self) -> str:
        """Name of the cache's variable."""
        found = self.read.variable_id.data
        return found if self.room is None else transposed_variable(found)


def store_plain(model: Model, cache: StoredCache) -> None:
    """Store rows as they are computed."""
    element = element_of(cache.read.output)
    replace_past(model, cache, [read_rows(model, cache, span, element) for span in cache.spans])
    kept = assign_rows(model, cache, turned(model, cache.new, cache.assign))
    Rewriter.replace_op(cache.assign, [], [kept])


def store_quantized(model: Model, cache: StoredCache) -> None:
    """Store 8-bit rows, and the scale of each row of a head in a second variable.

    Attention reads new rows as later inferences will, so results do not depend on how a prompt was
    cut into chunks.
    """
    kind = StringAttr(element_of(cache.read.output))
    scale_name = cache.read.variable_id.data + SCALE_SUFFIX
    past: list[SSAValue] = []
    for span in cache.spans:
        values = read_rows(model, cache, span, "i8")
        shape = (1, span.rows, cache.shape[2], 1)
        scales = _read(model, cache, span.of(scale_name), SCALE_ELEMENT, shape)
        g = GraphBuilder(model, cache.read)
        past.append(g.op(Dequantize, values, scales, [], destination_type=kind))
    replace_past(model, cache, past)

    join = cache.assign.value.owner
    assert isinstance(join, Concat)  # ``cache_of`` found the new rows by it
    g = GraphBuilder(model, join)
    rows = quantize_rows(g, cache.new, SCALE_ELEMENT)
    values, scales = (turned(model, each, join) for each in (rows.values, rows.scales))
    # Attention reads the stored values: rows laid out token by token, as those of the past.
    seen = g.op(Dequantize, values, scales, [], destination_type=kind)
    join.operands[1] = turned(model, seen, join)  # after the stored rows
    kept = assign_rows(model, cache, values)
    _assign(model, cache, scale_name, scales)
    Rewriter.replace_op(cache.assign, [], [kept])


def replace_past(model: Model, cache: StoredCache, spans: Sequence[SSAValue]) -> None:
    """Replace the read of stored rows by ranges [slots, rows, heads, width].

    The ranges are joined where the graph joins them with new rows; ``lower-attention`` keeps
    operands of that Concat separate.
    """
    seen = [turned(model, span, cache.read) for span in spans]
    past = GraphBuilder(model, cache.read).concat(seen, 2) if len(seen) > 1 else seen[0]
    cache.read.output.replace_all_uses_with(past)
    Rewriter.erase_op(cache.read)


def read_rows(model: Model, cache: StoredCache, span: RowRange, element: str) -> SSAValue:
    """Read stored rows [slots, rows, heads, width] of any layout."""
    heads, width = cache.shape[2:]
    if cache.room is None:
        return _read(model, cache, span.of(cache.name), element, (1, span.rows, heads, width))
    whole = _read(model, cache, span.of(cache.name), element, (1, heads, width, cache.room))
    g = GraphBuilder(model, cache.read)
    return g.transpose(g.slice(whole, 3, 0, span.rows), *_FROM_TRANSPOSED)


def assign_rows(model: Model, cache: StoredCache, rows: SSAValue) -> SSAValue:
    """Assign new rows, given token by token, in the layout of the cache."""
    return _assign(model, cache, cache.name, rows, () if cache.room is None else _TRANSPOSED)


def _read(model: Model, cache: StoredCache, name: str, element: str, shape: Shape) -> SSAValue:
    """Read the variable of all slots; the host supplies its initial value."""
    g = GraphBuilder(model, cache.read)
    slots = range(cache.slots)
    names = [name] if cache.slots == 1 else [slot_variable(name, slot) for slot in slots]
    every = [g.add(read_value(each, element, shape)) for each in names]
    if cache.keeps_type:
        for each in every:
            keep_type(each)
    return g.concat([each.output for each in every], 0) if len(every) > 1 else every[0].output


def read_value(name: str, element: str, shape: Shape) -> ReadValue:
    """Return an op that reads a variable, whose initial value the host supplies."""
    return ReadValue(
        operands=[[]],
        properties={"variable_id": StringAttr(name)},
        result_types=[tensor(element, shape)],
    )


def _assign(
    model: Model, cache: StoredCache, name: str, rows: SSAValue, order: Sequence[int] = ()
) -> SSAValue:
    """Assign new rows; those of all slots are stored like rows of one conversation."""
    g = GraphBuilder(model, cache.assign)
    if cache.slots > 1:
        rows = g.reshape(rows, 1, -1, 0, 0)
    if order:
        rows = g.transpose(rows, *order)
    kept = g.add(Assign.make([rows], variable_id=StringAttr(name)))
    if cache.keeps_type:
        keep_type(kept)
    return kept.output


def turned(model: Model, value: SSAValue, before: Operation) -> SSAValue:
    """Exchange heads and tokens; insert the op before another."""
    g = GraphBuilder(model, before)
    return g.op(Transpose, value, g.ints(*_TOKEN_MAJOR))
