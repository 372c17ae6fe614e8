"""Folding of a repeated block to its first and its last repetition."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.model import Model
from compiler_layer.partition.repeated.attributes import (
    UNNAMED,
    Kept,
    LayerNames,
    add_repeated_ids,
    set_repetitions,
)
from compiler_layer.partition.repeated.find import MIN_REPETITIONS, Repetitions, find_repetitions
from compiler_layer.rewriting.dataflow import visiting_order


def folded(model: Model, both_first: bool = False) -> Model | None:
    """Copy a model with only the first and the last repetition of its block.

    Args:
        model: not changed.
        both_first: True to keep the second repetition. It shows how one repetition follows another
            even if the last one ends differently.

    Returns:
        The folded model, or None if the model has no repeated block, or nothing can be omitted.
    """
    order = visiting_order(model)
    found = find_repetitions(order)
    if found is None or found.count < MIN_REPETITIONS + both_first:
        return None
    try:
        return _Folder(model, order, found, kept=2 if both_first else 1).run()
    except _CannotFold:
        return None


class _CannotFold(Exception):
    """Use of a repetition's value by an op outside of the repetition and its neighbours."""


class _Folder:
    """Copier of a model without the repetitions between the first ``kept`` and the last.

    Ops are copied in the visiting order, each right after the operands that only it needs.
    """

    def __init__(
        self, model: Model, order: Sequence[Operation], found: Repetitions, kept: int
    ) -> None:
        self._kept = kept
        self._kept_end = found.span(kept).begin
        self._model = model
        self._order = order
        self._found = found
        self._at = {op: number for number, op in enumerate(order)}
        kinds = [port.type for port in model.inputs]
        names = [port.name for port in model.inputs]
        self._made, arguments = Model.build(list(zip(names, kinds, strict=True)))
        self._copies: dict[SSAValue, SSAValue] = dict(
            zip((port.value for port in model.inputs), arguments, strict=True)
        )
        self._copied: set[Operation] = set()
        self._weights = self._own_weights()

    def run(self) -> Model:
        first, last = self._found.first, self._found.span(self._found.count - 1)
        for op in self._order[: first.begin]:
            self._copy(op)
        self._copy_shared(self._order[first.begin : first.next.begin])
        for op in self._order[first.begin : self._kept_end]:
            self._copy(op)
        for op in self._order[last.begin :]:
            for operand in op.operands:
                self._refuse_inside(operand)
            self._copy(op)
        for port in self._model.outputs:
            self._refuse_inside(port.value)
        results = [(port.name, self._value(port.value)) for port in self._model.outputs]
        self._made.set_outputs(results)
        count = self._found.count
        kept = Kept(count, 1 if self._kept > 1 else count - 1)
        set_repetitions(self._made, kept, _layer_names(self._order, self._found))
        add_repeated_ids(self._made, self._variables())
        return self._made

    def _own_weights(self) -> dict[SSAValue, tuple[int, Sequence[Constant]]]:
        """Return, for each weight of a kept repetition, its number and the weights of all."""
        weights: dict[SSAValue, tuple[int, Sequence[Constant]]] = {}
        count = self._found.count
        for value in self._found.pairings[0].values:
            chain = [value]
            for pairing in self._found.pairings:
                chain.append(pairing.values[chain[-1]])
            constants = [each.owner for each in chain if isinstance(each.owner, Constant)]
            if len({each.value for each in constants}) > 1:
                for number, constant in enumerate(constants):
                    self._refuse_guests(constant, number)
                for number in {*range(self._kept), count - 1}:
                    weights[chain[number]] = (number, constants)
        return weights

    def _refuse_guests(self, weight: Constant, number: int) -> None:
        """Reject a weight that an op outside of its repetition also reads."""
        pending: list[Operation] = [weight]
        own = self._found.span(number)
        while pending:
            for result in pending.pop().results:
                for use in result.uses:
                    place = self._at.get(use.operation)
                    if place is None:
                        # The op prepares the weight for its own readers.
                        pending.append(use.operation)
                    elif place not in own:
                        raise _CannotFold(f"{weight.described} is used outside of its block")

    def _copy_shared(self, ops: Sequence[Operation]) -> None:
        """Copy the values that all repetitions share before the first repetition."""
        own = self._found.pairings[0].values
        pending = [operand for op in reversed(ops) for operand in reversed(op.operands)]
        while pending:
            value = pending.pop()
            if value in own:
                if not isinstance(value, OpResult):
                    raise _CannotFold("each repetition has its own inputs")
                pending.extend(reversed(value.op.operands))
            elif self._place(value) is None:
                self._value(value)

    def _refuse_inside(self, value: SSAValue) -> None:
        """Reject a value of a kept repetition that the end reads.

        A kept repetition represents all: the end would read the value of another repetition.
        """
        place = self._place(value)
        if place is not None and self._found.first.begin <= place < self._kept_end:
            raise _CannotFold(f"{value.owner} is used after its block")

    def _place(self, value: SSAValue) -> int | None:
        return self._at.get(value.op) if isinstance(value, OpResult) else None

    def _value(self, value: SSAValue) -> SSAValue:
        """Return the copy of a value; the first call creates it."""
        pending = [value]
        while pending:
            wanted = pending[-1]
            source = self._source(wanted)
            if source in self._copies:
                self._copies[wanted] = self._copies[source]
                pending.pop()
                continue
            assert isinstance(source, OpResult)  # arguments were copied first
            missing = [x for x in source.op.operands if x not in self._copies]
            if missing:
                pending.extend(reversed(missing))
            else:
                self._copy(source.op)
        return self._copies[value]

    def _source(self, value: SSAValue) -> SSAValue:
        """Redirect the last repetition's reads of its predecessor to the last kept one."""
        place = self._place(value)
        last = self._found.span(self._found.count - 1)
        if place is None or place < self._kept_end or place >= last.begin:
            return value
        before = self._found.span(self._found.count - 2)
        if place not in before:
            raise _CannotFold(f"{value.owner} is used outside of its block")
        assert isinstance(value, OpResult)  # only results have a place
        source = self._order[place - before.begin + self._found.span(self._kept - 1).begin]
        return source.results[value.index]

    def _copy(self, op: Operation) -> None:
        """Copy an op after its operands, once."""
        if op in self._copied:
            return
        self._copied.add(op)
        for operand in op.operands:
            self._value(operand)
        copy = self._repeated(op) or op.clone(self._copies)
        self._made.body.insert_op_before(copy, self._made.terminator)
        self._copies.update(zip(op.results, copy.results, strict=True))

    def _repeated(self, op: Operation) -> Operation | None:
        """Return a constant with the weights of all repetitions, if an op is such a weight."""
        weight = self._weights.get(op.results[0]) if isinstance(op, Constant) else None
        if weight is None:
            return None
        own, constants = weight
        return Constant.repeated(own, constants, constants[own].friendly_name)

    def _variables(self) -> list[list[str]]:
        """Return the ids of each variable of the block in all repetitions."""
        first, count = self._found.first, self._found.count
        found: dict[str, list[str]] = {}
        for place in range(first.begin, first.next.begin):
            places = range(place, place + count * first.length, first.length)
            every = [self._order[at] for at in places]
            ids = [op.variable_id.data for op in every if isinstance(op, ReadValue | Assign)]
            if ids:
                found[ids[0]] = ids
        return list(found.values())


_NUMBER = re.compile(r"\d+")


def _layer_names(order: Sequence[Operation], found: Repetitions) -> LayerNames:
    """Return the counter that most names of the first two repetitions share."""
    block = found.first
    counted = Counter[tuple[str, int]]()
    first: dict[tuple[str, int], int] = {}
    for place in range(block.begin, block.next.begin):
        one, other = order[place], order[place + block.length]
        if isinstance(one, OvOp) and isinstance(other, OvOp):
            for prefix, a, b in _difference(one.friendly_name, other.friendly_name):
                counted[prefix, b - a] += 1
                first[prefix, b - a] = min(a, first.get((prefix, b - a), a))
    if not counted:
        return UNNAMED
    best = max(counted, key=lambda names: counted[names])
    return LayerNames(best[0], first[best], best[1]) if best[1] > 0 else UNNAMED


def _difference(one: str, other: str) -> list[tuple[str, int, int]]:
    """Return the only number in which two names differ, with its prefix; or no number."""
    if _NUMBER.sub("0", one) != _NUMBER.sub("0", other):
        return []
    pairs = zip(_NUMBER.finditer(one), _NUMBER.finditer(other), strict=True)
    different = [(a, b) for a, b in pairs if a[0] != b[0]]
    if len(different) != 1:
        return []
    (a, b) = different[0]
    return [(one[: a.start()], int(a[0]), int(b[0]))]
