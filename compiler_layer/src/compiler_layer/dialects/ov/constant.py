"""``ov.Constant``: a view of a file, or a small value held inline.

Weights are never copied into the IR: a constant refers to their location in a file, which is
memory-mapped when the values are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import OpResult, SSAValue
from xdsl.irdl import prop_def, result_def

from compiler_layer.dialects.ov.constant_value import (
    FileAttr,
    Inline,
    InlineAttr,
    Repeated,
    RepeatedAttr,
    ValueAttr,
    attribute_of,
)
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, OvOp
from compiler_layer.dialects.ov.types import (
    Shape,
    Tensor,
    element_of,
    shape_of,
    tensor,
    tensor_type,
)
from compiler_layer.elements import INTEGERS, NUMPY, Array, numpy_element, stored_bytes, to_bytes
from compiler_layer.files import FileView

_MAX_LISTED = 1 << 16
"""Maximum length of a list of axes, dimensions or lengths."""


class Constant(OvOp):
    """Constant tensor."""

    value = prop_def(ValueAttr)
    output = result_def(Tensor)
    assembly_format = "$value attr-dict `:` type($output)"

    def infer(self) -> list[Tensor]:
        """Return the type that the constant was created with."""
        return [tensor_type(self.output)]

    @staticmethod
    def inline(array: Array, element: str | None = None) -> Constant:
        """Make a constant of a numpy array; raw bits (bf16, f8, 4-bit) need ``element``."""
        array = np.asarray(array)
        kind = element or numpy_element(array.dtype)
        value = InlineAttr(Inline(kind, np.ascontiguousarray(array, NUMPY[kind]).tobytes()))
        return Constant._with(value, tensor(kind, array.shape))

    @staticmethod
    def of_file(view: FileView, element: str, shape: Shape) -> Constant:
        """Make a constant whose values stay in their file."""
        return Constant._with(FileAttr(view), tensor(element, shape))

    @staticmethod
    def repeated(own: int, values: Sequence[Constant], name: str = "") -> Constant:
        """Make a constant with a separate value for each repetition of a block.

        Args:
            own: the repetition that the constant itself belongs to.
            values: constants of one type, for all repetitions.
            name: the friendly name.
        """
        data = tuple(each.held for each in values)
        return Constant._with(
            RepeatedAttr(Repeated(own, data)), tensor_type(values[own].output), name
        )

    @staticmethod
    def _with(value: ValueAttr, kind: Tensor, name: str = "") -> Constant:
        op = Constant(properties={"value": value}, result_types=[kind])
        if name:
            op.attributes[NAME_ATTRIBUTE] = StringAttr(name)
        return op

    @property
    def held(self) -> FileView | Inline:
        """Location of the value, or an inline value; for a repeated constant, of its ``own``."""
        data = self.value.data
        return data.values[data.own] if isinstance(data, Repeated) else data

    @property
    def is_repeated(self) -> bool:
        """True if each repetition of a block has its own value; none may be relied on."""
        return isinstance(self.value, RepeatedAttr)

    @property
    def repetitions(self) -> int:
        """Number of repetitions of a block that the constant has values for."""
        data = self.value.data
        return len(data.values) if isinstance(data, Repeated) else 1

    def of_repetition(self, number: int) -> Constant:
        """Return the constant that replaces this one in a repetition of the block."""
        data = self.value.data
        value = attribute_of(data.values[number]) if isinstance(data, Repeated) else self.value
        return Constant._with(value, tensor_type(self.output), self.friendly_name)

    def each(self, make: Callable[[Constant], Constant]) -> Constant:
        """Apply ``make`` to this constant, or to the constant of every repetition."""
        data = self.value.data
        if not isinstance(data, Repeated):
            return make(self)
        made = [make(self.of_repetition(number)) for number in range(len(data.values))]
        return Constant.repeated(data.own, made)

    def load(self) -> Array:
        """Return the values, read-only; of a file, only accessed pages are read."""
        shape = shape_of(self.output)
        held = self.held
        if isinstance(held, Inline):
            return np.frombuffer(held.data, NUMPY[held.element]).reshape(shape)
        return held.load(element_of(self.output), shape)

    @property
    def nbytes(self) -> int:
        """Size of the value in bytes."""
        return stored_bytes(element_of(self.output), math.prod(shape_of(self.output)))

    def stored(self) -> memoryview | bytes:
        """Return the bytes in their memory representation: two 4-bit elements in a byte."""
        held, element = self.held, element_of(self.output)
        if isinstance(held, FileView):
            return held.stored(element, shape_of(self.output))
        return to_bytes(self.load(), element)


def constant_of(value: SSAValue) -> Constant | None:
    """Return the constant that defines a value, or None."""
    owner = value.owner if isinstance(value, OpResult) else None
    return owner if isinstance(owner, Constant) else None


def values_of(value: SSAValue) -> Array | None:
    """Return the values of a constant, or None if they are not known."""
    constant = constant_of(value)
    return None if constant is None or constant.is_repeated else constant.load()


def ints_of(value: SSAValue) -> list[int] | None:
    """Return the integers of a constant as a flat list, or None if they are not known.

    Raises:
        ValueError: the elements are not integers, or too many for a list of axes or dimensions.
    """
    constant = constant_of(value)
    if constant is None or constant.is_repeated:
        return None
    count = math.prod(shape_of(value))
    if element_of(value) not in INTEGERS or count > _MAX_LISTED:
        raise ValueError(f"a constant of {count} {element_of(value)} is not a list of integers")
    return [int(v) for v in constant.load().reshape(-1)]


def int_of(value: SSAValue) -> int | None:
    """Return the only integer of a constant, or None if it is not known.

    Raises:
        ValueError: the constant does not hold exactly one integer.
    """
    values = ints_of(value)
    if values is None:
        return None
    if len(values) != 1:
        raise ValueError(f"expected one integer, got {len(values)}")
    return values[0]
