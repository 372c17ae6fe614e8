"""Trace of rows through row-wise ops, and parts of weights that are stacked over experts.

Each row of a result depends on one row of the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FOUR_BIT, stored_bytes
from compiler_layer.files import FileView
from compiler_layer.rewriting.match import ELEMENTWISE, RESHAPES, owner_of

OF_WEIGHTS = Convert | Dequantize | Reshape
"""Ops that prepare weights before their use."""


def is_weight(value: SSAValue) -> bool:
    """Return whether a value is a constant, or computed from constants as weights are."""
    owner = owner_of(value)
    return isinstance(owner, Constant) or (
        isinstance(owner, OF_WEIGHTS) and all(map(is_weight, owner.operands))
    )


@dataclass(slots=True)
class RowWalk:
    """Walk from a result back to the sources of its rows.

    Attributes:
        tokens: T.
        stacked: E if each value has rows of all experts, [E, T, ..., N]; 0 if it has the rows of
            one, [T, N].
        is_source: predicate that stops the walk at a value.
        columns: further values that stop the walk: factors of rows.
        sources: the values at which the walk stopped.
        ops: the visited ops.
    """

    tokens: int
    stacked: int
    is_source: Callable[[SSAValue], bool]
    columns: Iterable[SSAValue]
    sources: set[SSAValue] = field(default_factory=set[SSAValue])
    ops: set[Operation] = field(default_factory=set[Operation])

    def visit(self, value: SSAValue) -> bool:
        """Visit a value; return False if an op mixes rows or is not supported."""
        if not self.has_rows(value):
            return False
        if value in self.columns:
            return True
        if self.is_source(value):
            self.sources.add(value)
            return True
        op = owner_of(value)
        if op is None or op in self.ops:
            return op is not None
        self.ops.add(op)
        if isinstance(op, RESHAPES):
            return self.visit(op.x) and shape_of(op.x)[-1:] == shape_of(value)[-1:]
        if isinstance(op, MatMul):
            return not int_value(op.transpose_a) and self._is_matrix(op.b) and self.visit(op.a)
        if isinstance(op, ELEMENTWISE):
            rank = len(shape_of(value))
            return all(self._is_shared(x, rank) or self.visit(x) for x in op.operands)
        return False

    def has_rows(self, value: SSAValue) -> bool:
        """Return whether a value consists of exactly one row per token."""
        shape = shape_of(value)
        leading = shape[:1] == (self.stacked,) or not self.stacked
        return leading and math.prod(shape[:-1]) == self.tokens * (self.stacked or 1)

    def _is_matrix(self, value: SSAValue) -> bool:
        """Return whether a value is a weight matrix common to all rows of an expert."""
        rank = 3 if self._of_experts(value, 3) else 2
        return len(shape_of(value)) == rank and self._take_weight(value, rank == 3)

    def _is_shared(self, value: SSAValue, rank: int) -> bool:
        """Return whether a value is equal for all rows of an expert."""
        of_experts, shape = self._of_experts(value, rank), shape_of(value)
        rows = shape[1:-1] if of_experts else shape[:-1]
        return math.prod(rows) == 1 and self._take_weight(value, of_experts)

    def _of_experts(self, value: SSAValue, rank: int) -> bool:
        return of_experts(value, rank, self.stacked)

    def _take_weight(self, value: SSAValue, stacked: bool) -> bool:
        """Return whether a value is weights that can be cut; add the ops that compute them."""
        if not is_weight(value) or (stacked and not _is_stack(value, self.stacked)):
            return False
        made = [owner_of(value)]
        while made:
            op = made.pop()
            if op is not None and op not in self.ops:
                self.ops.add(op)
                made += map(owner_of, op.operands)
        return True


def of_experts(value: SSAValue, rank: int, experts: int) -> bool:
    """Return whether a value of a rank has a part for each of the stacked experts."""
    shape = shape_of(value)
    return experts > 0 and len(shape) == rank and shape[0] == experts


def _is_stack(value: SSAValue, experts: int) -> bool:
    """Return whether each expert's part of stored weights is contiguous."""
    op = owner_of(value)
    if isinstance(op, Dequantize):
        rank = len(shape_of(op.stored))
        return shape_of(op.stored)[0] == experts and all(
            is_cut(constant_of(x), rank) for x in op.operands
        )
    if shape_of(value)[0] != experts:
        return False
    if isinstance(op, Convert | Reshape):
        return _is_stack(op.x, experts)
    return is_cut(constant_of(value), len(shape_of(value)))


def is_cut(constant: Constant | None, rank: int) -> bool:
    """Return whether each expert's part of a constant begins at a byte boundary."""
    if constant is None:
        return False
    shape, element = shape_of(constant.output), element_of(constant.output)
    if isinstance(constant.held, FileView):
        element = constant.held.element
    in_half = element in FOUR_BIT and math.prod(shape[1:]) % 2
    return len(shape) < rank or shape[0] == 1 or not in_half


def expert_part(constant: Constant, index: int, rank: int) -> Constant:
    """Return one expert's part of a constant, without the first dimension; a view stays a view.

    Args:
        constant: with a first dimension of experts or of 1, or of a rank less than ``rank``.
        index: the expert.
        rank: the rank of the weights that the constant belongs to.
    """
    shape, element = shape_of(constant.output), element_of(constant.output)
    if len(shape) < rank or shape[0] == 1:
        return Constant.inline(constant.load().reshape(shape[len(shape) == rank :]), element)
    view = constant.held
    if not isinstance(view, FileView):
        return Constant.inline(constant.load()[index], element)
    size = stored_bytes(view.element, math.prod(shape[1:]))
    cut = replace(view, offset=view.offset + index * size, size=size)
    return Constant.of_file(cut, element, shape[1:])
