"""Routing of tokens to experts in exported graphs.

A router chooses K of E experts for each of T tokens: ``ids [T, K]``. For each expert the graph
lists the pairs (token, slot) that chose it, by NonZero of a part of the one-hot ``ids``, and
computes with their numbers. This module replaces the chosen pairs by all pairs: the values that the
graph computes from all numbers reveal their meaning, whatever ops the graph uses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant, values_of
from compiler_layer.dialects.ov.elementwise import Binary, Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.indexing import NonZero, OneHot, TopK
from compiler_layer.dialects.ov.logic import Equal
from compiler_layer.dialects.ov.op import OvOp, bool_attr, int_value
from compiler_layer.dialects.ov.reduce import ReduceLogicalOr
from compiler_layer.dialects.ov.shape import Reshape, Squeeze, Transpose, Unsqueeze
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.dialects.ov.types import element_of, is_static, shape_of
from compiler_layer.elements import FLOATS, NUMPY, Array
from compiler_layer.reference.interpreter import evaluate
from compiler_layer.rewriting.match import owner_of, producer, unconverted
from compiler_layer.rewriting.replace import insert_before

_MOVING = Gather | Reshape | Squeeze | Transpose | Unsqueeze | Slice
"""Ops that move elements of a one-hot tensor, through which they can be traced."""

_MOST_MARKS = 1 << 24
"""Maximum elements of a one-hot tensor: 8 of 128 experts for 16,384 tokens."""


@dataclass(frozen=True, eq=False, slots=True)
class Routing:
    """Pairs of tokens and slots that chose one expert."""

    ids: SSAValue
    """Chosen experts, [T, K]."""
    hits: SSAValue
    """Pairs that chose this expert, boolean [T, K]."""
    routed: SSAValue
    """Tokens routed to this expert, boolean [T, 1]."""
    listed: Array
    """Result of NonZero if all pairs are listed, [2, P]."""
    tokens: Array
    """Token of each listed pair, [P]."""
    slots: Array
    """Slot of each listed pair, [P]."""

    @property
    def token_count(self) -> int:
        """Number of tokens, T."""
        return shape_of(self.ids)[0]

    @property
    def slot_count(self) -> int:
        """Number of slots per token, K."""
        return shape_of(self.ids)[1]


class Router:
    """Recogniser of the pairs that NonZero ops list; shared operands are traced once."""

    def __init__(self) -> None:
        self._numbered: dict[SSAValue, tuple[OneHot, Array] | None] = {}

    def routing(self, op: NonZero) -> Routing | None:
        """Return the pairs that an op lists, or None if the op lists other data."""
        found = self._origin(op.x)
        ids = _distinct_ids(found[0]) if found is not None else None
        if found is None or ids is None or found[1].ndim != 2:
            return None
        one_hot, numbers = found
        slots, experts = shape_of(one_hot.output)[1:]
        pairs, expert = np.divmod(numbers.reshape(-1), experts)
        if sorted(pairs) != list(range(shape_of(ids)[0] * slots)) or len(set(expert)) != 1:
            return None
        hits = _equal(op, ids, int(expert[0]))
        last = insert_before(op, Constant.inline(np.array([-1], np.int64)))
        routed = insert_before(op, ReduceLogicalOr.make([hits, last], keep_dims=bool_attr(True)))
        listed = np.indices(numbers.shape).reshape(2, -1).astype(NUMPY[op.output_type.data])
        return Routing(ids, hits, routed, listed, pairs // slots, pairs % slots)

    def _origin(self, value: SSAValue) -> tuple[OneHot, Array] | None:
        """Return the one-hot tensor that a value is cut from, and each element's number in it."""
        if value not in self._numbered:
            self._numbered[value] = self._trace(value)
        return self._numbered[value]

    def _trace(self, value: SSAValue) -> tuple[OneHot, Array] | None:
        owner = owner_of(value)
        if isinstance(owner, OneHot) and is_static(shape_of(value)):
            count = math.prod(shape_of(value))
            listed = np.arange(count).reshape(shape_of(value)) if count <= _MOST_MARKS else None
            return None if listed is None else (owner, listed)
        if isinstance(owner, Convert) and element_of(value) not in FLOATS:
            return self._origin(owner.x)
        if not isinstance(owner, _MOVING):
            return None
        first, *others = owner.operands
        known = [values_of(other) for other in others]
        inner = self._origin(first)
        if inner is None or any(values is None for values in known):
            return None
        moved = computed(owner, [inner[1], *(v for v in known if v is not None)])
        return (inner[0], moved[0]) if moved is not None else None


def computed(op: OvOp, values: Sequence[Array]) -> Sequence[Array] | None:
    """Return the values of an op; None if it fails, or has more elements than any router."""
    try:
        if isinstance(op, Binary):
            both = np.broadcast_shapes(*(value.shape for value in values))
            if math.prod(both) > _MOST_MARKS:
                return None
        return evaluate(op, values)
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError):
        return None


def _distinct_ids(op: OneHot) -> SSAValue | None:
    """Return the ids [T, K] that an op marks along a last dimension, if distinct per token."""
    on, off = values_of(op.on), values_of(op.off)
    if len(shape_of(op.indices)) != 2 or int_value(op.axis) not in (2, -1):
        return None
    if on is None or off is None or not on.all() or off.any():
        return None
    largest = topk_of(op.indices)
    return op.indices if largest is not None and int_value(largest.axis) in (1, -1) else None


def topk_of(ids: SSAValue) -> TopK | None:
    """Return the TopK that chose some ids, so that they are distinct, or None."""
    chosen = unconverted(ids)
    largest = producer(chosen, TopK)
    return largest if largest is not None and chosen is largest.indices else None


def _equal(place: OvOp, ids: SSAValue, expert: int) -> SSAValue:
    number = Constant.inline(np.array(expert, NUMPY[element_of(ids)]))
    return insert_before(place, Equal.make([ids, insert_before(place, number)]))
