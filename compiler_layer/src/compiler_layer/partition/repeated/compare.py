"""Comparison of a block's repetitions, which may differ in weights and variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.constant_value import Inline, Repeated
from compiler_layer.dialects.ov.types import element_of, shape_of

_OWN = ("value", "variable_id")
"""Properties that may differ between equal blocks: weights and variables."""

_NUMBERS = ("i64", "i32", "boolean")
"""Types of constants that are shapes, axes and flags, which must be equal."""

Signature = tuple[object, ...]


def signature(op: Operation) -> Signature:
    """Return a key that corresponding ops of equal blocks share."""
    properties = tuple((k, v) for k, v in op.properties.items() if k not in _OWN)
    return op.name, len(op.operands), tuple(op.result_types), properties


@dataclass(frozen=True, slots=True)
class Span:
    """Ops from ``begin`` to ``begin + length`` of the visiting order."""

    begin: int
    length: int

    def __contains__(self, place: int) -> bool:
        return self.begin <= place < self.begin + self.length

    @property
    def next(self) -> Span:
        """Span right after this one."""
        return Span(self.begin + self.length, self.length)


@dataclass(slots=True)
class Pairing:
    """Counterparts in two consecutive blocks.

    ``values`` maps the first block's own values, apart from its ops in the visiting order, to the
    second's. ``enters`` is set if the second block reads a value of the first where the first block
    reads a value from outside; then no block precedes the first.
    """

    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    enters: bool = False

    def goes_on(self, before: Pairing) -> bool:
        """Return whether the pairing of the block before ends with the same own values."""
        return not self.enters and self.values.keys() == set(before.values.values())


class Comparison:
    """Comparison of spans of one graph.

    Args:
        order: the graph's visiting order.
    """

    def __init__(self, order: Sequence[Operation]) -> None:
        self._order = order
        self._at = {op: number for number, op in enumerate(order)}
        self._signatures: dict[Operation, Signature] = {}

    def pair(self, first: Span) -> Pairing | None:
        """Pair a span with the next one; return None if the blocks differ."""
        found = Pairing()
        for place in range(first.begin, first.begin + first.length):
            one, other = self._order[place], self._order[place + first.length]
            if not self._same_kind(one, other):
                return None
            for x, y in zip(one.operands, other.operands, strict=True):
                if not self._same(x, y, first, found):
                    return None
        return found

    def _same_kind(self, one: Operation, other: Operation) -> bool:
        return self._signature(one) == self._signature(other)

    def _signature(self, op: Operation) -> Signature:
        found = self._signatures.get(op)
        if found is None:
            found = self._signatures[op] = signature(op)
        return found

    def _same(self, x: SSAValue, y: SSAValue, first: Span, found: Pairing) -> bool:
        """Return whether values are counterparts: shared, own, or passed from block to block."""
        pending = [(x, y)]
        while pending:
            a, b = pending.pop()
            if a is b and self._is_inside(a, first):
                return False  # belongs to the first block alone, though the second reads it
            if a is b or found.values.get(a) is b:
                continue
            if _are_variables(a, b) and a not in found.values:
                found.values[a] = b
                continue
            if not isinstance(a, OpResult) or not isinstance(b, OpResult) or a.index != b.index:
                return False
            here, there = self._at.get(a.op), self._at.get(b.op)
            if here is not None and there is not None:
                if not self._follows(here, there, first, found):
                    return False
                continue
            if here is not None or there is not None or a in found.values:
                return False
            if not self._same_kind(a.op, b.op) or not same_constants(a.op, b.op):
                return False
            found.values[a] = b
            pending += zip(a.op.operands, b.op.operands, strict=True)
        return True

    def _is_inside(self, value: SSAValue, block: Span) -> bool:
        place = self._at.get(value.op) if isinstance(value, OpResult) else None
        return place is not None and place in block

    def _follows(self, here: int, there: int, first: Span, found: Pairing) -> bool:
        if there == here + first.length:
            return True
        # The first block reads from outside, the second from the first.
        found.enters |= here < first.begin and there in first
        return here < first.begin and there in first


def _are_variables(a: SSAValue, b: SSAValue) -> bool:
    """Return whether values are inputs of one type, as lifted variables are."""
    return isinstance(a, BlockArgument) and isinstance(b, BlockArgument) and a.type == b.type


def same_constants(one: Operation, other: Operation) -> bool:
    """Return whether two ops of equal signature are not constants, or interchangeable ones."""
    if not isinstance(one, Constant) or not isinstance(other, Constant):
        return True
    if one.value == other.value:
        return True
    if element_of(one.output) in _NUMBERS or math.prod(shape_of(one.output)) == 1:
        # Passes depend on values of numbers: ranges, factors and exponents become immediates.
        return False
    if isinstance(one.value.data, Repeated) or isinstance(other.value.data, Repeated):
        # In a folded model: the same weight in other repetitions.
        datas = (one.value.data, other.value.data)
        return len({d.values if isinstance(d, Repeated) else None for d in datas}) == 1
    a, b = one.held, other.held
    if isinstance(a, Inline) or isinstance(b, Inline):
        return type(a) is type(b)
    return (a.size, a.element) == (b.size, b.element)
