"""Builder of ``ov`` graphs, op by op, with inferred types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from compiler_layer.dialects.ov import elementwise, gather, matmul, shape, slicing
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, OvOp, bool_attr, int_attr
from compiler_layer.dialects.ov.types import Shape, shape_of
from compiler_layer.elements import Array
from compiler_layer.files import FileView
from compiler_layer.model import Model

_END = np.iinfo(np.int64).max
"""Stop of a slice that extends to the end."""

AnyOp = TypeVar("AnyOp", bound=OvOp)


class GraphBuilder:
    """Appender of ops to a model; each method returns the op's value.

    Args:
        model: the model that receives the ops.
        before: the op to insert before; by default the model's return.
    """

    def __init__(self, model: Model, before: Operation | None = None) -> None:
        self._model = model
        self._before = before
        self._small: dict[tuple[str, Shape, bytes], SSAValue] = {}

    def add(self, op: AnyOp, name: str = "") -> AnyOp:
        """Append an op, with a friendly name."""
        if name:
            op.attributes[NAME_ATTRIBUTE] = StringAttr(name)
        self._model.body.insert_op_before(op, self._before or self._model.terminator)
        return op

    def op(
        self,
        kind: type[OvOp],
        *operands: SSAValue | Sequence[SSAValue],
        name: str = "",
        **properties: Attribute,
    ) -> SSAValue:
        """Append an op with one result."""
        return self.add(kind.make(operands, **properties), name).results[0]

    def constant(self, array: Array) -> SSAValue:
        """Return a small constant; equal constants share one op."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._small:
            self._small[key] = self.add(Constant.inline(array)).output
        return self._small[key]

    def ints(self, *values: int) -> SSAValue:
        """Return an i64 vector."""
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: int) -> SSAValue:
        """Return an i64 scalar."""
        return self.constant(np.array(value, np.int64))

    def weight(self, view: FileView, element: str, dims: Shape, name: str) -> SSAValue:
        """Return a weight of a file as f32; the file's bytes and element type stay as stored."""
        value = self.add(Constant.of_file(view, element, dims), f"{name}_compressed").output
        return value if element == "f32" else self.convert(value, "f32", name)

    def convert(self, value: SSAValue, element: str, name: str = "") -> SSAValue:
        """Append a conversion."""
        kind = StringAttr(element)
        return self.op(elementwise.Convert, value, name=name, destination_type=kind)

    def matmul(self, a: SSAValue, b: SSAValue, transpose_b: bool, name: str = "") -> SSAValue:
        """Append a matmul."""
        flags = {"transpose_a": bool_attr(False), "transpose_b": bool_attr(transpose_b)}
        return self.op(matmul.MatMul, a, b, name=name, **flags)

    def reshape(self, value: SSAValue, *pattern: int, name: str = "") -> SSAValue:
        """Append a reshape in which 0 keeps a dimension."""
        flag = bool_attr(True)
        return self.op(shape.Reshape, value, self.ints(*pattern), name=name, special_zero=flag)

    def transpose(self, value: SSAValue, *order: int, name: str = "") -> SSAValue:
        """Append a transposition."""
        return self.op(shape.Transpose, value, self.ints(*order), name=name)

    def unsqueeze(self, value: SSAValue, *axes: int, name: str = "") -> SSAValue:
        """Insert dimensions of size 1."""
        return self.op(shape.Unsqueeze, value, self.ints(*axes), name=name)

    def gather(self, data: SSAValue, indices: SSAValue, axis: int, name: str = "") -> SSAValue:
        """Append a gather."""
        zero = int_attr(0)
        return self.op(gather.Gather, data, indices, self.scalar(axis), name=name, batch_dims=zero)

    def concat(self, parts: Sequence[SSAValue], axis: int, name: str = "") -> SSAValue:
        """Append a concatenation."""
        return self.op(slicing.Concat, parts, name=name, axis=int_attr(axis))

    def slice(self, value: SSAValue, axis: int, start: int, stop: int = _END) -> SSAValue:
        """Append a slice of one dimension."""
        bounds = (self.ints(start), self.ints(stop), self.ints(1))
        return self.op(slicing.Slice, value, *bounds, [self.ints(axis)])

    def split(self, value: SSAValue, axis: int, lengths: Sequence[int]) -> list[SSAValue]:
        """Append a split into parts of given lengths."""
        operands = [value, self.scalar(axis), self.ints(*lengths)]
        return list(self.add(slicing.VariadicSplit.make(operands)).results)

    def times(self, value: SSAValue, factor: float) -> SSAValue:
        """Append the multiplication of an f32 value by a number; append nothing for 1."""
        if factor == 1:
            return value
        return self.op(elementwise.Multiply, value, self.number(factor, value))

    def number(self, number: float, beside: SSAValue) -> SSAValue:
        """Return an f32 constant with the rank of ``beside``, so that the two broadcast."""
        rank = len(shape_of(beside))
        return self.constant(np.full((1,) * rank, number, np.float32))

    def dim(self, value: SSAValue, axis: int) -> SSAValue:
        """Return one dimension of a value's shape as an i64 vector of one element."""
        whole = self.op(shape.ShapeOf, value, output_type=StringAttr("i64"))
        return self.gather(whole, self.ints(axis), 0)
