"""Cut of a model at its repeated block into prologue, block and epilogue.

Each part is a complete model, compiled separately. The block runs once for each repetition, with
other weights and variables each time; ``partition.compiled`` describes how the parts are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, OpResult, SSAValue

from compiler_layer.errors import NotPeriodic
from compiler_layer.model import Model
from compiler_layer.partition.compiled import HIDDEN_IN, HIDDEN_OUT, SHARED
from compiler_layer.partition.parts import copy_ops, fixed_ops
from compiler_layer.partition.repeated.attributes import (
    add_repeated_ids,
    kept_repetitions,
    repeated_ids,
)
from compiler_layer.partition.repeated.compare import Span
from compiler_layer.partition.repeated.find import Repetitions, find_repetitions
from compiler_layer.rewriting.dataflow import visiting_order

_GRAPH_REPETITIONS = 3
"""Repetitions in the graph: the first, the second, and the last."""


@dataclass(frozen=True, slots=True)
class RepeatedParts:
    """Parts of a model; the block runs ``count`` times."""

    prologue: Model
    block: Model
    epilogue: Model
    count: int


def cut_at_block(model: Model) -> RepeatedParts:
    """Cut a model that was folded with its first two repetitions.

    Args:
        model: its variables are inputs and outputs (``lift-state``); not changed.

    Raises:
        NotPeriodic: the model is not folded in this way, its repetitions differ, or an op that is
            not in the next repetition uses an inner value of a repetition.
    """
    kept = kept_repetitions(model)
    if kept is None:
        raise NotPeriodic("the model repeats no block at least four times: it cannot be cut")
    order = visiting_order(model)
    found = find_repetitions(order)
    if found is None or found.count != _GRAPH_REPETITIONS:
        raise NotPeriodic("the model's repetitions differ after the passes: it cannot be cut")
    return _Cutter(model, order, found).cut(kept.count)


class _Cutter:
    def __init__(self, model: Model, order: Sequence[Operation], found: Repetitions) -> None:
        self._model = model
        self._at = {op: number for number, op in enumerate(order)}
        self._found = found
        self._own = found.pairings[0].values
        self._fixed = fixed_ops(model)
        self._shared: dict[SSAValue, str] = {}
        self._hidden = list(self._handed_on(order))
        """Input and output of the first repetition, for each hidden value."""

    def cut(self, count: int) -> RepeatedParts:
        first, last = self._found.first, self._found.span(_GRAPH_REPETITIONS - 1)
        handed = [
            (f"{HIDDEN_OUT}{number}", given) for number, (_, given) in enumerate(self._hidden)
        ]
        assigned = [port for port in self._outputs() if self._in(port[1], first)]
        blocks = [*handed, *assigned]
        block_inputs = {taken: f"{HIDDEN_IN}{n}" for n, (taken, _) in enumerate(self._hidden)}
        self._find_shared(blocks, block_inputs, first)
        ends = [port for port in self._outputs() if self._part(port[1]) == "epilogue"]
        end_inputs = self._left_by(last)
        tail = Span(last.begin + last.length, len(self._at))
        self._find_shared(ends, end_inputs, tail)
        block = _extract(self._model, block_inputs | self._shared, blocks)
        epilogue = _extract(self._model, end_inputs | self._shared, ends)
        begun = [(f"{HIDDEN_OUT}{n}", taken) for n, (taken, _) in enumerate(self._hidden)]
        begun += [(name, value) for value, name in self._shared.items()]
        begun += [port for port in self._outputs() if self._part(port[1]) == "prologue"]
        prologue = _extract(self._model, {}, begun)
        _add_unread(prologue, self._model)
        add_repeated_ids(block, repeated_ids(self._model))
        return RepeatedParts(prologue, block, epilogue, count)

    def _handed_on(self, order: Sequence[Operation]) -> Iterator[tuple[SSAValue, SSAValue]]:
        first = self._found.first
        seen: set[SSAValue] = set()
        for place in range(first.begin, first.next.begin):
            one, other = order[place], order[place + first.length]
            for taken, given in zip(one.operands, other.operands, strict=True):
                if taken not in seen and self._in(given, first) and not self._in(taken, first):
                    seen.add(taken)
                    yield taken, given

    def _left_by(self, last: Span) -> dict[SSAValue, str]:
        """Return the hidden values that the last repetition computes."""
        left: dict[SSAValue, str] = {}
        order = {place: op for op, place in self._at.items()}
        for number, (_, given) in enumerate(self._hidden):
            assert isinstance(given, OpResult)  # an op of the first repetition defines it
            later = self._at[given.op] - self._found.first.begin + last.begin
            left[order[later].results[given.index]] = f"{HIDDEN_IN}{number}"
        return left

    def _outputs(self) -> list[tuple[str, SSAValue]]:
        return [(port.name, port.value) for port in self._model.outputs]

    def _part(self, value: SSAValue) -> str:
        """Return the part that computes one of the model's outputs."""
        place = self._place(value)
        if place is None or place < self._found.first.begin:
            return "prologue"
        end = self._found.span(_GRAPH_REPETITIONS).begin
        return "block" if place < end else "epilogue"

    def _find_shared(
        self, outputs: Sequence[tuple[str, SSAValue]], cut: Mapping[SSAValue, str], own: Span
    ) -> None:
        """Find values that a part needs and that are neither its own, constant nor hidden."""
        pending = [value for _, value in outputs]
        seen = set(pending)
        while pending:
            value = pending.pop()
            if value in cut or value in self._shared or not isinstance(value, OpResult):
                continue
            place = self._place(value)
            mine = place is not None and place in own
            if mine or value in self._own or value.op in self._fixed:
                new = [operand for operand in value.op.operands if operand not in seen]
                pending += new
                seen.update(new)
                continue
            if place is not None and place >= self._found.first.begin:
                raise NotPeriodic(f"{value.op.name} is used outside of its block: it cannot be cut")
            self._shared[value] = f"{SHARED}{len(self._shared)}"

    def _in(self, value: SSAValue, span: Span) -> bool:
        place = self._place(value)
        return place is not None and place in span

    def _place(self, value: SSAValue) -> int | None:
        return self._at.get(value.op) if isinstance(value, OpResult) else None


def _add_unread(part: Model, model: Model) -> None:
    """Add the inputs without uses to a part; callers may look up their names."""
    for port in model.inputs:
        if not port.value.uses:
            names = [each.name for each in part.inputs]
            part.body.insert_arg(port.type, len(names))
            part.set_inputs([*names, port.name])


def _extract(
    model: Model, cut: Mapping[SSAValue, str], outputs: Sequence[tuple[str, SSAValue]]
) -> Model:
    """Copy the ops that outputs need, back to values that become inputs and to model inputs."""
    needed: set[Operation] = set()
    reached: set[SSAValue] = set()
    pending = [value for _, value in outputs]
    while pending:
        value = pending.pop()
        if value in reached:
            continue
        reached.add(value)
        if value not in cut and isinstance(value, OpResult):
            needed.add(value.op)
            pending += value.op.operands
    ports = [(port.name, port.value) for port in model.inputs if port.value in reached]
    ports += [(name, value) for value, name in cut.items() if value in reached]
    return copy_ops([op for op in model.body.ops if op in needed], ports, outputs)
