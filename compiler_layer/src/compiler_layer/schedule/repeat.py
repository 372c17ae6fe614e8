"""The repeated block of a folded model in its lowered ops, and its differences between repetitions.

A folded model has the first and the last repetition of its block. The *body* is the ops from some
place in the first repetition to the same place in the last one. It runs once less than the number
of repetitions, and then the rest of the last repetition follows. So kernels may cross the border of
two repetitions, and the first may begin and the last end differently.

The body reads and writes four classes of buffers:

shared   the same in all repetitions: masks, rotary tables, constants
own      a weight, a cache …: known for each repetition
carried  passed on from one repetition to the next, in two alternating buffers
inside   written and read in one repetition
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from compiler_layer.codegen import kernel_program
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant_value import Inline, Repeated
from compiler_layer.dialects.ov.types import Tensor, tensor_type
from compiler_layer.errors import CompilerUsageError, NotPeriodic
from compiler_layer.files import FileView
from compiler_layer.partition.repeated.attributes import Kept
from compiler_layer.schedule.layout import BufferLayout, HardwareOp
from compiler_layer.schedule.views import Buffer, Space


@dataclass(frozen=True, slots=True)
class PortNames:
    """Names of an input or output in all repetitions."""

    space: Space
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepeatedWeights:
    """Weights of all repetitions, and the type they are read as."""

    values: tuple[FileView | Inline, ...]
    kind: Tensor


Family = PortNames | RepeatedWeights


@dataclass(frozen=True, slots=True)
class Own:
    """The family of buffers that a buffer belongs to, and its repetition."""

    family: Family
    number: int


@dataclass(frozen=True, slots=True)
class Body:
    """The ops ``begin`` to ``begin + length`` of a layout, which run ``times`` times.

    ``second`` is the repetition that follows the first in the folded model, and that the rest of
    the program begins with. ``own`` are buffers of which each repetition has its own. ``carried``
    maps buffers that the body reads from the repetition before to those it writes for the next.
    """

    begin: int
    length: int
    times: int
    second: int
    own: Mapping[Buffer, Own]
    carried: Mapping[Buffer, Buffer]

    @property
    def end(self) -> int:
        """The first op after the body."""
        return self.begin + self.length


def find_body(layout: BufferLayout, kept: Kept, families: Sequence[tuple[str, ...]]) -> Body:
    """Find the body of a folded model.

    Args:
        layout: layout of the lowered model.
        kept: number of repetitions, and the repetitions that are present.
        families: endings of the names of inputs and outputs, for all repetitions.

    Raises:
        NotPeriodic: the two repetitions have become different.
        CompilerUsageError: the model's attributes about its layers are inconsistent.
    """
    own = _own_buffers(layout, families)
    if any(_count(which.family) != kept.count for which in own.values()):
        raise CompilerUsageError("a folded model lacks weights or names of some of its layers")
    begin, length = _distance(layout, own, kept.second)
    same = [
        place + length < len(layout.ops) and _same_op(layout.ops[place], layout.ops[place + length])
        for place in range(len(layout.ops))
    ]
    # Not earlier: ops outside all repetitions may look like the end of one.
    first = begin
    following = {0: kept.second, kept.second: kept.count - 1}
    while first < begin + length:
        matcher = _Matcher(layout.ops, own, following, first, length)
        wrong = matcher.first_mismatch(same)
        if wrong is None:
            times = kept.second if kept.second > 1 else kept.count - 2
            return Body(first, length, times, kept.second, own, matcher.carried)
        first = wrong + 1
    raise NotPeriodic("no range of ops is the same in two layers; compile without fold-blocks")


def _count(family: Family) -> int:
    return len(family.names if isinstance(family, PortNames) else family.values)


def _own_buffers(layout: BufferLayout, families: Sequence[tuple[str, ...]]) -> dict[Buffer, Own]:
    own: dict[Buffer, Own] = {}
    for buffer in layout.constants:
        constant = buffer.constant
        value = constant.value.data if constant is not None else None
        if constant is not None and isinstance(value, Repeated):
            own[buffer] = Own(
                RepeatedWeights(value.values, tensor_type(constant.output)), value.own
            )
    endings = {name: (family, number) for family in families for number, name in enumerate(family)}
    for buffer in (*layout.inputs, *layout.outputs):
        # Passes add prefixes: the longest ending of a port's name decides.
        name = buffer.name
        ending = next((name[at:] for at in range(len(name)) if name[at:] in endings), None)
        if ending is not None:
            family, number = endings[ending]
            begin = name.removesuffix(ending)
            names = PortNames(buffer.space, tuple(begin + each for each in family))
            own[buffer] = Own(names, number)
    return own


def _distance(layout: BufferLayout, own: Mapping[Buffer, Own], second: int) -> tuple[int, int]:
    """Return the first repetition's first op with a weight, and its distance to the last one's."""
    begins: dict[int, int] = {}
    for place, op in enumerate(layout.ops):
        for view in op.operands:
            if view.buffer.space is not Space.OUTPUT and view.buffer in own:
                begins.setdefault(own[view.buffer].number, place)
    first, last = begins.get(0), begins.get(second)
    if first is None or last is None or last <= first:
        raise NotPeriodic("no op reads a weight of its own layer in two layers")
    return first, last - first


def _same_op(one: HardwareOp, other: HardwareOp) -> bool:
    """Return whether two ops compute the same on operands with the same layout."""
    a, b = one.op, other.op
    if type(a) is not type(b) or len(one.operands) != len(other.operands):
        return False
    if a is not None and b is not None and a.properties != b.properties:
        return False
    if (
        isinstance(a, npu.Kernel)
        and isinstance(b, npu.Kernel)
        and (a.domain != b.domain or kernel_program(a) != kernel_program(b))
    ):
        return False
    views = zip((*one.operands, *one.results), (*other.operands, *other.results), strict=True)
    return all(replace(x, buffer=y.buffer) == y for x, y in views)


@dataclass(slots=True)
class _Matcher:
    """Matcher of a candidate body: pairs buffers of its ops with those of the ops one length later.

    ``following`` maps a repetition to the next one in the folded model.
    """

    ops: Sequence[HardwareOp]
    own: Mapping[Buffer, Own]
    following: Mapping[int, int]
    first: int
    length: int
    carried: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    shared: set[Buffer] = field(default_factory=set[Buffer])
    made: dict[Buffer, int] = field(default_factory=dict[Buffer, int])

    def first_mismatch(self, same: Sequence[bool]) -> int | None:
        """Return the first place at which the candidate fails, or None if it is a body.

        The last repetition may end differently, but not before its middle.
        """
        end = self.first + self.length
        self.made = {view.buffer: place for place, op in enumerate(self.ops) for view in op.results}
        middle = self.first + self.length // 2
        place = self.first
        while place < end and same[place] and self._pairs(place):
            place += 1
        if place < middle:
            return place
        alone = (p for p in range(place, end) if not self._stands_alone(p))
        return next(alone, None if self._ends_well(place + self.length) else self.first)

    def _ends_well(self, begin: int) -> bool:
        """Return whether ops without a counterpart, from ``begin`` on, read no result of the body.

        They would read the results of its last run, but may need those of every run: a sum over all
        layers, for example, of which a folded model shows only the layers it keeps.
        """
        body_end = self.first + self.length
        return all(
            self.made.get(view.buffer, body_end) >= body_end or view.buffer in self.shared
            for op in self.ops[begin:]
            for view in op.operands
        )

    def _pairs(self, place: int) -> bool:
        one, other = self.ops[place], self.ops[place + self.length]
        reads = zip(one.operands, other.operands, strict=True)
        writes = zip(one.results, other.results, strict=True)
        carried, shared = dict(self.carried), set(self.shared)
        alike = all(self._read_alike(x.buffer, y.buffer) for x, y in reads) and all(
            self._written_alike(x.buffer, y.buffer) for x, y in writes
        )
        if not alike:
            # Conclusions from its first operands may be wrong.
            self.carried, self.shared = carried, shared
        return alike

    def _read_alike(self, x: Buffer, y: Buffer) -> bool:
        here, there = self.made.get(x, -1), self.made.get(y, -1)
        inside = here >= self.first and there == here + self.length
        if x in self.own or y in self.own:
            # A weight or a cache; or rows of a cache that attention reads again.
            return self._same_family(x, y) and (inside or here == there == -1)
        if here >= self.first:
            return inside
        if x is y or (x.space is Space.CONSTANT and _same_constant(x, y)):
            self.shared.add(x)
            return x not in self.carried
        if self.first <= there < self.first + self.length and x.space is Space.SCRATCH:
            return self.carried.setdefault(x, y) is y and x not in self.shared
        return False

    def _written_alike(self, x: Buffer, y: Buffer) -> bool:
        if x.space is Space.SCRATCH and y.space is Space.SCRATCH:
            return True
        return self._same_family(x, y)

    def _same_family(self, x: Buffer, y: Buffer) -> bool:
        if x not in self.own or y not in self.own:
            return False
        a, b = self.own[x], self.own[y]
        follows = self.following.get(a.number) == b.number != a.number
        return a.family == b.family and follows

    def _stands_alone(self, place: int) -> bool:
        """Return whether each buffer's substitute is known in all runs without a later op."""
        op = self.ops[place]
        reads = all(
            view.buffer in self.own
            or self.made.get(view.buffer, -1) >= self.first
            or view.buffer in self.carried
            or view.buffer in self.shared
            or view.buffer.space is Space.CONSTANT
            for view in op.operands
        )
        return reads and all(
            view.buffer.space is Space.SCRATCH or view.buffer in self.own for view in op.results
        )


def _same_constant(x: Buffer, y: Buffer) -> bool:
    a, b = x.constant, y.constant
    return a is not None and b is not None and a.value == b.value and a.output.type == b.output.type
