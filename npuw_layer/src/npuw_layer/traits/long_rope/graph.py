"""Passes for models with two sets of rotary factors; the host marks long inferences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Convert, Multiply
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.reduce import ReduceMax
from compiler_layer.dialects.ov.shape import Reshape, Squeeze, Unsqueeze
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model, Port
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.computed import Computed, made_of
from npuw_layer.llm.graph.graph_pass import GraphPass, Placed
from npuw_layer.llm.graph.rope_cache import CacheRope, cache_rope
from npuw_layer.llm.graph.static_inputs import StaticInputs
from npuw_layer.llm.graph.usual_axes import UsualAxes
from npuw_layer.llm.plan.stages import Stage, rope_rows
from npuw_layer.options import Options
from npuw_layer.tensors.names import POSITIONS
from npuw_layer.traits.long_rope.trait import END, LONG_ROPE, long_from

_LARGEST = (1 << 31) - 1


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the passes for a model that depends on its largest position."""
    if not any(True for _ in largest_positions(model)):
        return ()
    return (
        Placed(UsualAxes.name, MarkLongInferences()),
        Placed(CacheRope.name, CacheBothRopes(rope_rows(stage, options))),
        Placed(StaticInputs.name, ShapeLongMark(stage.slots)),
    )


def _reach_of(model: Model) -> Port | None:
    """Return the input that marks long inferences; None if the graph has none."""
    long = long_from(port.name for port in model.inputs)
    return next((port for port in model.inputs if long is not None and port.name == long[0]), None)


@dataclass(frozen=True)
class CacheBothRopes(GraphPass):
    """Look up sines and cosines in two tables, for short and for long inferences.

    Before:  %s = ov.Sin(%a) ; %a depends on %position_ids and %npuw_longrope_4096
    After:   %s = ov.Gather(%tables, ov.Add(%position_ids, ov.Multiply(%npuw_longrope_4096, rows)))

    Requires: ``mark-long-inferences``.
    """

    name = "cache-both-ropes"

    rows: int

    def _rewrite(self, model: Model) -> None:
        switch = _reach_of(model)
        if switch is not None:
            cache_rope(model, self.rows, switch.value)


@dataclass(frozen=True)
class ShapeLongMark(GraphPass):
    """Set the static shape of the input that marks long inferences.

    Before:  %npuw_longrope_4096 : tensor<?x1xi64>
    After:   %npuw_longrope_4096 : tensor<SLOTSx1xi64>

    Raises:
        ModelError: several conversations would share one choice.
    """

    name = "shape-long-mark"

    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        port = _reach_of(model)
        if port is None:
            return
        uses = port.value.uses
        if self.slots > 1 and any(isinstance(use.operation, Gather) for use in uses):
            raise ModelError(
                "for several conversations in one batch LongRoPE needs tables of rotary factors: "
                "leave NPUW_LLM_CACHE_ROPE on, and NPUW_LLM_ON_FULL other than SLIDE, or set "
                "NPUW_LLM_BATCH_SLOTS = 1"
            )
        model.set_input_shapes({port.name: (self.slots, 1)})


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


class _Change(NamedTuple):
    """Change of the values that depend on the largest position."""

    limit: int
    """First position with other values."""
    ends: bool
    """True if the other values are NaN."""


def _change(reach: OpResult) -> _Change | None:
    """Return the change of dependent values, if they change once; else None."""
    edge = list(_edge(reach))

    def values(last: int) -> list[Array]:
        known = np.full(shape_of(reach), last, np.int64)
        computed = Computed({reach: known})
        return [computed.of(value) for value in edge]

    def same(one: int, other: int) -> bool:
        pairs = zip(values(one), values(other), strict=True)
        return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)

    low, high = 0, _LARGEST
    if not edge or same(low, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if same(0, middle) else (low, middle)
    if not (same(high, _LARGEST) and same(high, min(2 * high, _LARGEST))):
        return None
    return _Change(high, any(np.isnan(each).any() for each in values(high)))


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
    replaces the largest position; its name has the position that makes an inference long, and ends
    with ``_end`` if there are no factors from there on.
    Evaluation finds the dependent values and that position.

    Source: docs/reference/npuw.md#rotary-tables: the host chooses between both sets of factors.
    """

    name = "mark-long-inferences"

    def _rewrite(self, model: Model) -> None:
        found = list(largest_positions(model))
        changes = {_change(each.results[0]) for each in found}
        if len(changes) != 1:
            return
        (change,) = changes
        if change is None:
            return
        limit, end = change.limit, END if change.ends else ""
        argument = model.add_input(f"{LONG_ROPE}{limit}{end}", tensor("i64", (-1, 1)))
        for each in found:
            Rewriter.replace_op(each, [], [_largest_of_input(model, each, argument, limit)])
