"""Symbolic lengths of a stateful graph: sums of a number, stored tokens and new tokens.

Exporters compute lengths from the shapes of caches and inputs, e.g. key_len − query_len. Passes
that rewrite such arithmetic compare these sums, not the ops that an exporter happened to write.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov import elementwise, gather, shape
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant, constant_of, ints_of
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.reduce import MVN
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.elements import INTEGERS
from compiler_layer.model import Model
from npuw_layer.tensors.names import MASK
from npuw_layer.tensors.token_inputs import TOKENS

Length = tuple[int, int, int]
"""A number, a multiple of the stored tokens, and a multiple of the new tokens."""

Dims = tuple[Length | None, ...]
"""Dimensions of a tensor; None if unknown."""

NONE: Length = (0, 0, 0)
STORED: Length = (0, 1, 0)
NEW: Length = (0, 0, 1)
TOTAL: Length = (0, 1, 1)

_KEPT = shape.Unsqueeze | shape.Squeeze | shape.Reshape | elementwise.Convert
"""Ops that keep a single integer unchanged."""

_ROW_WISE = (
    elementwise.Unary,
    elementwise.Binary,
    elementwise.Select,
    elementwise.Convert,
    MVN,
    ScaledDotProductAttention,
)
"""Ops whose result has the broadcast dimensions of the operands, or those of the first operand."""


class SymbolicLengths:
    """Symbolic lengths of a graph's integers; each value is analysed once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._dims: dict[SSAValue, Dims] = {}
        """Dimensions of all values; empty until first needed."""
        self._found: dict[SSAValue, Length | None] = {}
        self._constant: dict[SSAValue, bool] = {}

    def of(self, value: SSAValue) -> Length | None:
        """Return a single integer as a length; None if it is not such a sum."""
        if value not in self._found:
            self._found[value] = self._computed(value)
        return self._found[value]

    def vector(self, value: SSAValue) -> list[Length | None]:
        """Return the lengths in a vector of integers; empty if unknown."""
        known = ints_of(value) if element_of(value) in INTEGERS else None
        if known is not None:
            return [(number, 0, 0) for number in known]
        op = value.owner
        if isinstance(op, Concat):
            return [length for part in op.parts for length in self.vector(part)]
        if isinstance(op, shape.Broadcast):
            counts = ints_of(op.operands[1])
            repeated = counts is not None and len(counts) == 1
            return [self.of(op.operands[0])] * counts[0] if counts and repeated else []
        return [self.of(value)]

    def is_constant(self, value: SSAValue) -> bool:
        """Return whether a value depends on constants alone."""
        if value not in self._constant:
            op = value.owner
            operands = op.operands if isinstance(op, OvOp) else ()
            all_known = bool(operands) and all(self.is_constant(each) for each in operands)
            self._constant[value] = isinstance(op, Constant) or all_known
        return self._constant[value]

    def _computed(self, value: SSAValue) -> Length | None:
        known, op = single(value), value.owner
        if known is not None:
            return known, 0, 0
        if isinstance(op, _KEPT):
            return self.of(op.operands[0])
        if isinstance(op, elementwise.Add | elementwise.Subtract):
            a, b = self.of(op.a), self.of(op.b)
            sign = 1 if isinstance(op, elementwise.Add) else -1
            if a is None or b is None:
                return None
            return a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2]
        if isinstance(op, gather.Gather) and isinstance(op.data.owner, shape.ShapeOf):
            index = single(op.indices)
            return None if index is None else self._dimension(op.data.owner.x, index)
        return None

    def _dimension(self, value: SSAValue, index: int) -> Length | None:
        if not self._dims:
            self._carry()
        dims = self._dims.get(value, ())
        return dims[index] if -len(dims) <= index < len(dims) else None

    def _carry(self) -> None:
        """Propagate dimensions through the graph, each op after its operands."""
        for port in self._model.inputs:
            counted = {MASK: TOTAL, **dict.fromkeys(TOKENS, NEW)}.get(port.name)
            self._dims[port.value] = _with_known(shape_of(port.value), [None, counted, None])
        for op in self._model.ops:
            of = [self._dims.get(operand, ()) for operand in op.operands]
            for result in op.results:
                carried = self._carried(op, of) if -1 in shape_of(result) else ()
                self._dims[result] = _with_known(shape_of(result), carried)

    def _carried(self, op: Operation, of: Sequence[Dims]) -> Sequence[Length | None]:
        """Return the known dimensions of an op's result, given those of its operands."""
        if isinstance(op, ReadValue):
            return [None, None, STORED, None]
        if isinstance(op, _ROW_WISE):
            rank = len(shape_of(op.results[0]))
            aligned = [each for each in of if len(each) == rank]
            return [_longest(column) for column in zip(*aligned, strict=True)]
        if isinstance(op, MatMul):
            return [*of[0][:-1], None]
        if isinstance(op, shape.Transpose) and constant_of(op.order) is not None:
            return [of[0][axis] for axis in op.permutation()]
        if isinstance(op, shape.Reshape):
            kept = self.vector(op.operands[1])
            return [of[0][i] if each == NONE else each for i, each in enumerate(kept[: len(of[0])])]
        if isinstance(op, gather.Gather) and (axis := single(op.axis)) is not None:
            return [*of[0][:axis], *of[1], *of[0][axis + 1 :]]
        return ()


def _with_known(dims: Shape, carried: Sequence[Length | None]) -> Dims:
    """Return dimensions: static ones as numbers, the others as propagated."""
    rest = [*carried, *[None] * len(dims)]
    return tuple((d, 0, 0) if d >= 0 else rest[i] for i, d in enumerate(dims))


def _longest(column: Sequence[Length | None]) -> Length | None:
    """Return the dimension that operands broadcast to: the one that is not 1."""
    return next((each for each in column if each not in ((1, 0, 0), None)), None)


def single(value: SSAValue) -> int | None:
    """Return a known single integer; None for any other value."""
    known = ints_of(value) if element_of(value) in INTEGERS else None
    return known[0] if known is not None and len(known) == 1 else None
