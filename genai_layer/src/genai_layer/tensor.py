"""Tensors with openvino.Tensor's reading interface.

Source: openvino.Tensor of 2026.4, docs/reference/genai.md#tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from genai_layer.checked import checked
from genai_layer.errors import PromptError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_TYPES = {
    "int8": ("i8", "int8_t"),
    "int16": ("i16", "int16_t"),
    "int32": ("i32", "int32_t"),
    "int64": ("i64", "int64_t"),
    "uint8": ("u8", "uint8_t"),
    "uint16": ("u16", "uint16_t"),
    "uint32": ("u32", "uint32_t"),
    "uint64": ("u64", "uint64_t"),
    "float16": ("f16", "float16"),
    "float32": ("f32", "float32"),
    "float64": ("f64", "double64"),
    "bool": ("boolean", "char"),
}
"""OpenVINO's type name and printed name, by numpy's name."""


@dataclass(frozen=True, slots=True, repr=False)
class ElementType:
    """Element type of a tensor, printed like an openvino.Type."""

    name: str
    printed: str

    def get_type_name(self) -> str:
        """Return OpenVINO's short name, e.g. "i64"."""
        return self.name

    def __repr__(self) -> str:
        return f"<Type: '{self.printed}'>"


class Shape(tuple[int, ...]):
    """Dimensions of a tensor; equal to tuples and lists, and printed like an openvino.Shape."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, list) else other)  # pyright: ignore[reportUnknownArgumentType] (any list)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __str__(self) -> str:
        return f"[{','.join(map(str, self))}]"

    def __repr__(self) -> str:
        return f"<Shape: {self}>"


@runtime_checkable
class HasData(Protocol):
    """Object with an array in ``data``: a Tensor or an openvino.Tensor."""

    @property
    def data(self) -> npt.NDArray[Any]:
        """The elements."""
        ...


Nested = Sequence[Any]
RowsLike = HasData | npt.NDArray[Any] | Sequence[Sequence[int]]
TensorLike = HasData | npt.NDArray[Any] | Nested


class Tensor:
    """Tensor in host memory; it copies the given elements.

    Args:
        array: an array, a tensor, or nested lists of numbers.

    Raises:
        PromptError: the lists are ragged, or OpenVINO has no such element type.
    """

    @checked
    def __init__(self, array: TensorLike) -> None:
        self._data = np.array(array_of(array), order="C")
        name = self._data.dtype.name
        if name not in _TYPES:
            raise PromptError(f"{name}: not a tensor's element type; convert the array")
        self._type = ElementType(*_TYPES[name])

    @property
    def data(self) -> npt.NDArray[Any]:
        """The elements, which share the tensor's memory."""
        return self._data

    @property
    def shape(self) -> Shape:
        """Dimensions."""
        return Shape(self._data.shape)

    @property
    def element_type(self) -> ElementType:
        """Element type."""
        return self._type

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._data.size

    @property
    def byte_size(self) -> int:
        """Number of bytes."""
        return self._data.nbytes

    def get_shape(self) -> Shape:
        """Return the dimensions."""
        return self.shape

    def get_element_type(self) -> ElementType:
        """Return the element type."""
        return self._type

    def get_size(self) -> int:
        """Return the number of elements."""
        return self.size

    def get_byte_size(self) -> int:
        """Return the number of bytes."""
        return self.byte_size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self._data, dtype, copy=copy)

    def __repr__(self) -> str:
        return f"<Tensor: shape{self.shape} type: {self._type.name}>"


def array_of(given: TensorLike) -> npt.NDArray[Any]:
    """Return the array of an array, of a tensor, or of nested lists of numbers.

    Raises:
        PromptError: the object is none of them, or the lists are ragged.
    """
    if isinstance(given, np.ndarray):
        return given
    if is_tensor(given):
        return given.data
    if not isinstance(given, list | tuple):
        raise PromptError(f"{type(given).__name__}: not a tensor; pass a Tensor, an array or lists")
    try:
        return np.array(given)
    except ValueError as error:
        raise PromptError(f"lists of different lengths are no tensor: {error}; pad them") from None


def is_tensor(given: object) -> TypeIs[HasData]:
    """Return whether an object has an array in ``data``; an array itself has a memoryview."""
    return isinstance(getattr(given, "data", None), np.ndarray)
