"""Leaves of a repeated block the first and the last repetition alone."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.model import Model
from compiler_layer.passes.fold_blocks.find import Repetitions
from compiler_layer.passes.fold_blocks.names import layer_names
from compiler_layer.repetition import Kept, add_repeated_ids, set_repetitions


class CannotReduce(Exception):
    """Something besides the neighbours uses what is inside of a repetition."""


def reduced(
    model: Model, order: Sequence[Operation], found: Repetitions, both_first: bool = False
) -> Model:
    """Copy a model without the repetitions between the first, or the first two, and the last.

    Args:
        model: it is not changed.
        order: its visiting order.
        found: the block.
        both_first: whether the second repetition stays, too.

    Raises:
        CannotReduce: a dropped repetition is used by something else.
    """
    return _Reducer(model, order, found, kept=2 if both_first else 1).run()


class _Reducer:
    """Copies what stays, in the visiting order; what an op alone needs comes right before it."""

    def __init__(
        self, model: Model, order: Sequence[Operation], found: Repetitions, kept: int
    ) -> None:
        self._kept = kept
        self._kept_end = found.stretch(kept).begin
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
        first, last = self._found.first, self._found.stretch(self._found.count - 1)
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
        set_repetitions(self._made, kept, layer_names(self._order, self._found))
        add_repeated_ids(self._made, self._variables())
        return self._made

    def _own_weights(self) -> dict[SSAValue, tuple[int, Sequence[Constant]]]:
        """For each weight of a repetition that stays those of all of them."""
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
        """Refuse a weight that something outside of its repetition reads, too."""
        pending: list[Operation] = [weight]
        stretch = self._found.stretch(number)
        while pending:
            for result in pending.pop().results:
                for use in result.uses:
                    place = self._at.get(use.operation)
                    if place is None:
                        # It makes something else of the weight, for whoever reads that.
                        pending.append(use.operation)
                    elif place not in stretch:
                        raise CannotReduce(f"{weight.described} is used outside of its block")

    def _copy_shared(self, ops: Sequence[Operation]) -> None:
        """Copy what all repetitions share before the first of them."""
        own = self._found.pairings[0].values
        pending = [operand for op in reversed(ops) for operand in reversed(op.operands)]
        while pending:
            value = pending.pop()
            if value in own:
                if not isinstance(value, OpResult):
                    raise CannotReduce("each repetition has inputs of its own")
                pending.extend(reversed(value.op.operands))
            elif self._place(value) is None:
                self._value(value)

    def _refuse_inside(self, value: SSAValue) -> None:
        """Refuse what is made in a repetition that stays, if the end reads it.

        What stays stands for all repetitions: in the program the end would get it from another.
        """
        place = self._place(value)
        if place is not None and self._found.first.begin <= place < self._kept_end:
            raise CannotReduce(f"{value.owner} is used behind its block")

    def _place(self, value: SSAValue) -> int | None:
        return self._at.get(value.op) if isinstance(value, OpResult) else None

    def _value(self, value: SSAValue) -> SSAValue:
        """The copy of a value, made now if it is not there yet."""
        pending = [value]
        while pending:
            wanted = pending[-1]
            source = self._source(wanted)
            if source in self._copies:
                self._copies[wanted] = self._copies[source]
                pending.pop()
                continue
            assert isinstance(source, OpResult)  # the arguments are there from the beginning
            missing = [x for x in source.op.operands if x not in self._copies]
            if missing:
                pending.extend(reversed(missing))
            else:
                self._copy(source.op)
        return self._copies[value]

    def _source(self, value: SSAValue) -> SSAValue:
        """What the last repetition had from the one before, it now has from the last that stays."""
        place = self._place(value)
        last = self._found.stretch(self._found.count - 1)
        if place is None or place < self._kept_end or place >= last.begin:
            return value
        before = self._found.stretch(self._found.count - 2)
        if place not in before:
            raise CannotReduce(f"{value.owner} is used outside of its block")
        assert isinstance(value, OpResult)  # it has a place
        source = self._order[place - before.begin + self._found.stretch(self._kept - 1).begin]
        return source.results[value.index]

    def _copy(self, op: Operation) -> None:
        """Copy an op after its operands, unless it is there."""
        if op in self._copied:
            return
        self._copied.add(op)
        for operand in op.operands:
            self._value(operand)
        copy = self._repeated(op) or op.clone(self._copies)
        self._made.body.insert_op_before(copy, self._made.terminator)
        self._copies.update(zip(op.results, copy.results, strict=True))

    def _repeated(self, op: Operation) -> Operation | None:
        """The constant with the weights of all repetitions, if an op is one of these."""
        weight = self._weights.get(op.results[0]) if isinstance(op, Constant) else None
        if weight is None:
            return None
        own, constants = weight
        return Constant.repeated(own, constants, constants[own].friendly_name)

    def _variables(self) -> list[list[str]]:
        """The ids of the block's variables, for each in all repetitions."""
        first, count = self._found.first, self._found.count
        groups: dict[str, list[str]] = {}
        for place in range(first.begin, first.next.begin):
            places = range(place, place + count * first.length, first.length)
            every = [self._order[at] for at in places]
            ids = [op.variable_id.data for op in every if isinstance(op, ReadValue | Assign)]
            if ids:
                groups[ids[0]] = ids
        return list(groups.values())
