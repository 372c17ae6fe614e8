"""Tensor types by OpenVINO's names, interned; a dimension of -1 is dynamic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition

Shape = tuple[int, ...]
Tensor = TensorType[Attribute]


@irdl_attr_definition
class NF4Type(ParametrizedAttribute, TypeAttribute):
    """The element type nf4, which MLIR does not have."""

    name = "ov.nf4"


ELEMENTS: dict[str, Attribute] = {
    "f64": Float64Type(),
    "f32": Float32Type(),
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "f8e4m3": Float8E4M3FNType(),
    "f8e5m2": Float8E5M2Type(),
    "i64": IntegerType(64),
    "i32": IntegerType(32),
    "i16": IntegerType(16),
    "i8": IntegerType(8),
    "i4": IntegerType(4),
    "u64": IntegerType(64, Signedness.UNSIGNED),
    "u32": IntegerType(32, Signedness.UNSIGNED),
    "u16": IntegerType(16, Signedness.UNSIGNED),
    "u8": IntegerType(8, Signedness.UNSIGNED),
    "u4": IntegerType(4, Signedness.UNSIGNED),
    "nf4": NF4Type(),
    "boolean": IntegerType(1),
}
"""IR types by OpenVINO's names, the same as in ``compiler_layer.elements``."""

_NAMES = {element: name for name, element in ELEMENTS.items()}

MAX_RANK = 32
"""Maximum number of dimensions of a tensor."""

MAX_ELEMENTS = 1 << 40
"""Maximum number of elements of a tensor."""


@cache
def tensor(element: str, shape: Shape) -> Tensor:
    """Return the tensor type of an element type by name and a shape.

    Raises:
        ValueError: the element type does not exist, or the shape is not valid.
    """
    if element not in ELEMENTS:
        raise ValueError(f"unknown element type {element}")
    check_shape(shape)
    return TensorType(ELEMENTS[element], [DYNAMIC_INDEX if d < 0 else d for d in shape])


def check_shape(shape: Shape) -> None:
    """Reject shapes that no tensor has.

    Raises:
        ValueError: too many dimensions or elements, or a negative dimension other than -1.
    """
    if len(shape) > MAX_RANK:
        raise ValueError(f"a shape of {len(shape)} dimensions has too many")
    if min(shape, default=0) < -1 or math.prod(max(d, 1) for d in shape) > MAX_ELEMENTS:
        raise ValueError(f"{list(shape)} is not a valid shape")


def unknown_dims(rank: int) -> Shape:
    """Return a shape of known rank with unknown dimensions.

    Raises:
        ValueError: the rank is not known (negative), or too large.
    """
    if not 0 <= rank <= MAX_RANK:
        raise ValueError("unknown rank" if rank < 0 else f"a shape of {rank} dimensions")
    return (-1,) * rank


def known_axis(axis: int, rank: int) -> int:
    """Return an axis as a number that is not negative.

    Raises:
        ValueError: the axis does not exist.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for {rank} dimensions")
    return axis % rank


def known_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Return axes as numbers that are not negative.

    Raises:
        ValueError: an axis does not exist, or is named twice.
    """
    if len(axes) > rank:
        raise ValueError(f"{len(axes)} axes for {rank} dimensions")
    known = [known_axis(axis, rank) for axis in axes]
    if len(set(known)) < len(known):
        raise ValueError(f"an axis occurs twice in {list(axes)}")
    return known


def along_axes(axes: Sequence[int], rank: int) -> str:
    """Return the words for axes in a message; ``axes`` is empty if they are not known."""
    if not axes:
        return "along axes that are not constants"
    numbers = ", ".join(map(str, axes))
    return f"along {'axis' if len(axes) == 1 else 'axes'} {numbers} of {rank} dimensions"


def length_of(value: SSAValue) -> int:
    """Return the length of a vector; -1 if it is not known.

    Raises:
        ValueError: the value is not a vector.
    """
    shape = shape_of(value)
    if len(shape) != 1:
        raise ValueError(f"expected a vector, got a tensor of {len(shape)} dimensions")
    return shape[0]


def tensor_type(value: SSAValue) -> Tensor:
    """Return the type of a value; every value of a graph is a ranked tensor."""
    return cast(Tensor, value.type)


def shape_of(value: SSAValue) -> Shape:
    """Return the shape of a value, -1 for dynamic dimensions."""
    return tuple(-1 if d == DYNAMIC_INDEX else d for d in tensor_type(value).get_shape())


def element_of(value: SSAValue) -> str:
    """Return the name of a value's element type."""
    return _NAMES[tensor_type(value).element_type]


def is_static(shape: Sequence[int]) -> bool:
    """Return whether no dimension is dynamic."""
    return all(d >= 0 for d in shape)


def broadcast(*shapes: Shape) -> Shape:
    """Broadcast shapes as numpy does; a dynamic dimension yields to a known one other than 1.

    Raises:
        ValueError: two known dimensions differ and neither is 1.
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_broadcast_dim(dims) for dims in zip(*padded, strict=True))


def same_dims(*shapes: Shape) -> Shape:
    """Merge the known dimensions of equal shapes.

    Raises:
        ValueError: the ranks or two known dimensions differ.
    """
    known = [set(dims) - {-1} for dims in zip(*shapes, strict=False)]
    if len(set(map(len, shapes))) > 1 or any(len(dims) > 1 for dims in known):
        raise ValueError(f"{' and '.join(str(list(shape)) for shape in shapes)} differ")
    return tuple(dims.pop() if dims else -1 for dims in known)


def _broadcast_dim(dims: Sequence[int]) -> int:
    known = {d for d in dims if d not in (1, -1)}
    if len(known) > 1:
        raise ValueError(f"dimensions {sorted(known)} do not broadcast")
    if known:
        return known.pop()
    return -1 if -1 in dims else 1
