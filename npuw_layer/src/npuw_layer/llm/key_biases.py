"""Biases by distance on a static cache: they are looked up by token, not by row.

MPT keeps a table of biases, the last one for the newest key, and takes as many of the last as there
are keys: ``table[..., size - (past + tokens):]``. In a static cache the new rows follow the whole
buffer, however little of it is filled, so that a stored key would be given the bias of another
distance. The table is therefore read at the token index of each row, counted back from the newest.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, gather, shape
from compiler_layer.dialects.ov.constant import Constant, ints_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.dialects.ov.types import element_of, is_static, shape_of
from compiler_layer.elements import INTEGERS
from compiler_layer.model import Model
from npuw_layer.llm.cache_positions import (
    cache_position,
    join_slots,
    positions_by_slot,
)
from npuw_layer.llm.names import MASK
from npuw_layer.llm.token_inputs import TOKENS

_Length = tuple[int, int, int]
"""A number, how many times the stored tokens, and how many times the new ones."""

_KEPT = shape.Unsqueeze | shape.Squeeze | shape.Reshape | elementwise.Convert
"""Ops that keep a single integer as it is."""


def look_up_biases(model: Model, tokens: int, past: int, slots: int = 1) -> None:
    """Read tables of biases by token index; add the input ``cache_position`` if there are any.

    Args:
        model: the stateful graph, changed in place.
        tokens: new tokens that it takes.
        past: rows of its caches.
        slots: conversations that it takes tokens of.

    Raises:
        ModelError: it is not known how biases belong to several conversations.
    """
    lengths = _Lengths(model)
    for op in model.ops:
        axis = _bias_axis(op, lengths) if isinstance(op, Slice) else None
        if isinstance(op, Slice) and axis is not None:
            positions = cache_position(model, tokens, slots)
            found = [
                _looked_up(model, op, axis, own, past)
                for own in positions_by_slot(model, op, positions)
            ]
            Rewriter.replace_op(op, [], [join_slots(model, op, found)])


class _Lengths:
    """Tells what integers of a graph count."""

    def __init__(self, model: Model) -> None:
        self._inputs = {port.value: port.name for port in model.inputs}
        self._found: dict[SSAValue, _Length | None] = {}
        self._constant: dict[SSAValue, bool] = {}

    def of(self, value: SSAValue) -> _Length | None:
        """What a single integer counts, if it is made of lengths of caches and inputs."""
        if value not in self._found:
            self._found[value] = self._computed(value)
        return self._found[value]

    def is_constant(self, value: SSAValue) -> bool:
        """Whether a value depends on constants alone."""
        if value not in self._constant:
            op = value.owner
            operands = op.operands if isinstance(op, OvOp) else ()
            all_known = bool(operands) and all(self.is_constant(each) for each in operands)
            self._constant[value] = isinstance(op, Constant) or all_known
        return self._constant[value]

    def _computed(self, value: SSAValue) -> _Length | None:
        known, op = _single(value), value.owner
        if known is not None:
            return known, 0, 0
        if isinstance(op, _KEPT):
            return self.of(op.operands[0])
        if isinstance(op, elementwise.Add | elementwise.Subtract):
            a, b = self.of(op.a), self.of(op.b)
            sign = 1 if isinstance(op, elementwise.Add) else -1
            return None if a is None or b is None else _sum(a, b, sign)
        if isinstance(op, gather.Gather) and isinstance(op.data.owner, shape.ShapeOf):
            index = _single(op.indices)
            return None if index is None else self._dimension(op.data.owner.x, index)
        return None

    def _dimension(self, value: SSAValue, index: int) -> _Length | None:
        known = shape_of(value)[index]
        if known >= 0:
            return known, 0, 0
        while isinstance(value.owner, elementwise.Convert | gather.Gather):
            value = value.owner.operands[0]
        if isinstance(value.owner, ReadValue):
            return (0, 1, 0) if index == 2 else None
        counted = {MASK: (0, 1, 1), **dict.fromkeys(TOKENS, (0, 0, 1))}
        return counted.get(self._inputs.get(value, "")) if index == 1 else None


def _single(value: SSAValue) -> int | None:
    """A known integer that stands alone."""
    known = ints_of(value) if element_of(value) in INTEGERS else None
    return known[0] if known is not None and len(known) == 1 else None


def _sum(a: _Length, b: _Length, sign: int) -> _Length:
    return a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2]


def _bias_axis(op: Slice, lengths: _Lengths) -> int | None:
    """The dimension of which a slice takes the last, one for each stored and new token."""
    axes = ints_of(op.axes) if op.axes is not None else None
    end, dims = _single(op.stop), shape_of(op.x)
    if axes is None or len(axes) != 1 or _single(op.step) != 1 or not is_static(dims):
        return None
    axis = axes[0] % len(dims)
    takes_end = end is not None and end >= dims[axis]
    last_ones = lengths.of(op.start) == (dims[axis], -1, -1)
    return axis if takes_end and last_ones and lengths.is_constant(op.x) else None


def _looked_up(model: Model, op: Slice, axis: int, positions: SSAValue, past: int) -> SSAValue:
    """The biases of all rows, stored ones first."""
    g = GraphBuilder(model, op)
    dims = shape_of(op.x)
    new = g.reshape(positions, -1)
    rows = g.concat([g.constant(np.arange(past, dtype=np.int64)), new], 0) if past else new
    # The newest token is the last one, and has the last bias. Rows that nobody filled are masked.
    behind = g.op(elementwise.Subtract, rows, g.slice(new, 0, -1))
    index = g.op(elementwise.Add, behind, g.ints(dims[axis] - 1))
    index = g.op(elementwise.Minimum, index, g.ints(dims[axis] - 1))
    # As rows of a table, which DMA looks up.
    others = [i for i in range(len(dims)) if i != axis]
    table = g.reshape(g.transpose(op.x, axis, *others), dims[axis], -1)
    order = [axis, *others]
    found = g.reshape(g.gather(table, index, 0), -1, *(dims[i] for i in others))
    return g.transpose(found, *(order.index(i) for i in range(len(dims))))
