"""The ops, buffers and ports of a folded model's program in all its repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compiler_layer.model import Model, Port
from compiler_layer.partition.repeated.attributes import layer_names_of
from compiler_layer.schedule.layout import BufferLayout, HardwareOp
from compiler_layer.schedule.program import Run, Substitution
from compiler_layer.schedule.repeat import Body, Family, PortNames
from compiler_layer.schedule.views import Buffer, View


class Unfolding:
    """Construction of the buffers of repetitions that a folded model omits.

    Args:
        model: folded and lowered model.
        folded: its layout.
        body: its repeated ops.
        turns: the buffer that each carried buffer alternates with.
    """

    def __init__(
        self, model: Model, folded: BufferLayout, body: Body, turns: Mapping[Buffer, Buffer]
    ) -> None:
        self._folded = folded
        self._body = body
        self._turns = turns
        self._names = layer_names_of(model)
        self._constants = list(folded.constants)
        self._members: dict[Family, dict[int, Buffer]] = {}
        for buffer, which in body.own.items():
            self._members.setdefault(which.family, {})[which.number] = buffer
        inputs = self._all_ports(model.inputs, folded.inputs)
        outputs = self._all_ports(model.outputs, folded.outputs)
        self.inputs = [port for port, _ in inputs]
        self.outputs = [port for port, _ in outputs]
        self.body_runs = [
            Run(self._body_buffers(time), time * body.length) for time in range(body.times)
        ]
        rest = self._own_buffers({body.second: body.times})
        self.rest_run = Run(rest, (body.times - 1) * body.length)
        self.layout = BufferLayout(
            self._all_ops(),
            [buffer for _, buffer in inputs],
            [buffer for _, buffer in outputs],
            self._constants,
            [*folded.scratch, *turns.values()],
        )

    def _all_ports(
        self, ports: Sequence[Port], buffers: Sequence[Buffer]
    ) -> list[tuple[Port, Buffer]]:
        """Return the ports of all repetitions, in the place of the first repetition's ports."""
        found: list[tuple[Port, Buffer]] = []
        seen: set[Family] = set()
        for port, buffer in zip(ports, buffers, strict=True):
            which = self._body.own.get(buffer)
            if which is None:
                found.append((port, buffer))
            elif which.family not in seen:
                seen.add(which.family)
                count = len(which.family.names) if isinstance(which.family, PortNames) else 0
                for number in range(count):
                    member = self._member(which.family, number)
                    found.append((Port(member.name, port.value), member))
        for index, (_, buffer) in enumerate(found):
            buffer.index = index
        return found

    def _member(self, family: Family, number: int) -> Buffer:
        """Return a repetition's buffer of a family."""
        members = self._members[family]
        if number not in members:
            members[number] = self._made(family, next(iter(members.values())), number)
        return members[number]

    def _made(self, family: Family, like: Buffer, number: int) -> Buffer:
        if isinstance(family, PortNames):
            return Buffer(family.names[number], like.space, like.nbytes)
        assert like.constant is not None  # a family of weights
        later = number - (self._names.repetition(like.name) or 0)
        buffer = replace(
            like,
            name=self._names.renamed(like.name, later),
            index=len(self._constants),
            constant=like.constant.of_repetition(number),
        )
        self._constants.append(buffer)
        return buffer

    def _body_buffers(self, time: int) -> Substitution:
        """Return the substitution of buffers in the n-th run of the body."""
        body = self._body
        found = self._own_buffers({0: time, body.second: time + 1})
        for read, written in body.carried.items():
            if time:
                found[read] = self._handed_on(written, time - 1)
            found[written] = self._handed_on(written, time)
        return found

    def _own_buffers(self, numbers: Mapping[int, int]) -> dict[Buffer, Buffer]:
        return {
            buffer: self._member(which.family, numbers[which.number])
            for buffer, which in self._body.own.items()
            if which.number in numbers
        }

    def _handed_on(self, written: Buffer, time: int) -> Buffer:
        """Return one of two alternating buffers; the last run writes the one the rest reads."""
        last = (self._body.times - 1 - time) % 2 == 0
        return written if last else self._turns[written]

    def _all_ops(self) -> list[HardwareOp]:
        body, ops = self._body, self._folded.ops
        found = [*ops[: body.begin]]
        for time, run in enumerate(self.body_runs):
            numbers = {0: time, body.second: time + 1}
            found += [self._op(op, run, numbers) for op in ops[body.begin : body.end]]
        numbers = {body.second: body.times}
        return found + [self._op(op, self.rest_run, numbers) for op in ops[body.end :]]

    def _op(self, op: HardwareOp, run: Run, numbers: Mapping[int, int]) -> HardwareOp:
        """Return an op with the name and the buffers that it has in a run."""
        number = self._names.repetition(op.name)
        later = 0 if number is None else numbers.get(number, number) - number
        return replace(
            op,
            name=self._names.renamed(op.name, later),
            operands=tuple(substituted(view, run.buffers) for view in op.operands),
            results=tuple(substituted(view, run.buffers) for view in op.results),
        )


def substituted(view: View, buffers: Substitution) -> View:
    """Return a view of the buffer that replaces the view's own buffer."""
    other = buffers.get(view.buffer)
    return view if other is None else replace(view, buffer=other)
