"""Input by which the host marks long inferences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Convert, Multiply
from compiler_layer.dialects.ov.reduce import ReduceMax
from compiler_layer.dialects.ov.shape import Reshape, Squeeze, Unsqueeze
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from npuw_layer.backends.protocols import Array
from npuw_layer.llm.graph.computed import Computed, made_of
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.tensors.names import POSITIONS
from npuw_layer.traits.long_rope.names import LONG_ROPE

_LARGEST = (1 << 31) - 1


def _largest_of_input(model: Model, op: ReduceMax, given: SSAValue, limit: int) -> SSAValue:
    """Return a stand-in for the largest position: 0, or the first that makes an inference long."""
    g = GraphBuilder(model, op)
    largest = op.results[0]
    dims = shape_of(largest)
    first = g.gather(given, g.scalar(0), 0)
    flag = g.reshape(first, *dims) if dims else g.gather(first, g.scalar(0), 0)
    reached = g.op(Multiply, flag, g.constant(np.full(dims, limit, np.int64)))
    element = element_of(largest)
    return reached if element == "i64" else g.convert(reached, element)


def largest_positions(model: Model) -> Iterator[ReduceMax]:
    """Yield the ops that compute the largest of all positions."""
    positions = model.find_input(POSITIONS)
    if positions is None:
        return
    for op in model.body.ops:
        if not isinstance(op, ReduceMax) or not _is_positions(op.operands[0], positions):
            continue
        if all(size == 1 for size in shape_of(op.results[0])):
            yield op


def _is_positions(value: SSAValue, positions: SSAValue) -> bool:
    """Return whether a value is the positions, possibly in another shape."""
    while value is not positions:
        if not isinstance(value.owner, Reshape | Squeeze | Unsqueeze | Convert):
            return False
        value = value.owner.operands[0]
    return True


def _limit(reach: OpResult) -> int | None:
    """Return the position from which on dependent values change, if they change once; else None."""
    edge = list(_edge(reach))

    def values(last: int) -> list[Array]:
        known = np.full(shape_of(reach), last, np.int64)
        computed = Computed({reach: known})
        return [computed.of(value) for value in edge]

    def same(one: int, other: int) -> bool:
        pairs = zip(values(one), values(other), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)

    low, high = 0, _LARGEST
    if not edge or same(low, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if same(0, middle) else (low, middle)
    return high if same(high, _LARGEST) and same(high, min(2 * high, _LARGEST)) else None


def _edge(reach: OpResult) -> Iterator[SSAValue]:
    """Yield the values computed from ``reach`` and constants alone that other values depend on."""
    made: set[SSAValue] = {reach}
    pending: list[SSAValue] = [reach]
    while pending:
        value = pending.pop()
        inner = [use.operation for use in value.uses if _made_of(use.operation, made)]
        if len(inner) < len(list(value.uses)):
            yield value
        for op in inner:
            fresh = [result for result in op.results if result not in made]
            made.update(fresh)
            pending += fresh


def _made_of(op: Operation, made: set[SSAValue]) -> bool:
    return all(each in made or not any(True for _ in made_of(each)) for each in op.operands)


class MarkLongInferences(GraphPass):
    """Add an input by which the host marks long inferences, if rotary factors depend on length.

    Before:  %m = ov.ReduceMax(%position_ids) ; %long = ov.Greater(ov.Add(%m, 1), 4096)
    After:   %m = ov.Multiply(%npuw_longrope_4096, 4096) ; …

    Exporters compare max(position_ids) + 1 with the original context length. A static program
    cannot, as it may read a chunk of a prompt, and padding. So an input i64 [sequences, 1], 0 or 1,
    replaces the largest position; its name ends with the position that makes an inference long.
    Evaluation finds the dependent values and that position.

    Source: docs/reference/npuw.md#rotary-tables: the host chooses between both sets of factors.
    """

    name = "mark-long-inferences"

    def _rewrite(self, model: Model) -> None:
        found = list(largest_positions(model))
        limits = {_limit(each.results[0]) for each in found}
        if len(limits) != 1:
            return
        (limit,) = limits
        if limit is None:
            return
        argument = model.add_input(f"{LONG_ROPE}{limit}", tensor("i64", (-1, 1)))
        for each in found:
            Rewriter.replace_op(each, [], [_largest_of_input(model, each, argument, limit)])
