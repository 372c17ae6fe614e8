"""Strided views of DDR buffers: layouts of tensors, and views that cost nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, Self, TypeVar

import numpy as np

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import Shape
from compiler_layer.elements import NUMPY


class Space(Enum):
    """Kind of a buffer's memory."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    SCRATCH = "scratch"


@dataclass(eq=False, slots=True)
class Buffer:
    """A range of DDR. ``index`` counts inputs, outputs and constants; scratch has an ``offset``."""

    name: str
    space: Space
    nbytes: int
    index: int = 0
    offset: int = 0
    constant: Constant | None = None
    shares: Buffer | None = None
    """Input whose memory this port shares, for variables updated in place."""
    strided: bool = False
    """True for a port whose strides the caller chooses: only copies of its tensor access it."""


BufferT = TypeVar("BufferT")


@dataclass(frozen=True, slots=True)
class Strided(Generic[BufferT]):
    """A tensor in a buffer; offset and strides in bytes."""

    buffer: BufferT
    element: str
    offset: int
    shape: Shape
    strides: Shape

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return NUMPY[self.element].itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return math.prod(self.shape) * self.itemsize

    @property
    def span(self) -> tuple[int, int]:
        """The first byte and the one after the last, in the buffer."""
        reach = sum((d - 1) * s for d, s in zip(self.shape, self.strides, strict=True))
        return self.offset, self.offset + reach + self.itemsize

    def transposed(self, order: Sequence[int]) -> Self:
        """Return the same elements with dimensions in another order."""
        return replace(
            self,
            shape=tuple(self.shape[i] for i in order),
            strides=tuple(self.strides[i] for i in order),
        )

    def swapped(self) -> Self:
        """Return the same elements with the last two dimensions exchanged."""
        rank = len(self.shape)
        return self.transposed([*range(rank - 2), rank - 1, rank - 2])


def dense_strides(shape: Shape, step: int, order: Sequence[int] = ()) -> Shape:
    """Return the strides of a tensor without gaps.

    Args:
        shape: the tensor's shape.
        step: stride of the innermost dimension.
        order: the dimensions, outermost first; by default row-major.
    """
    strides = [0] * len(shape)
    for axis in reversed(order or range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


@dataclass(frozen=True, slots=True)
class View(Strided[Buffer]):
    """A tensor in DDR."""

    @staticmethod
    def dense(buffer: Buffer, element: str, shape: Shape, order: Sequence[int] = ()) -> View:
        """Return a tensor that fills a buffer; ``order`` lists dimensions, outermost first."""
        strides = dense_strides(shape, NUMPY[element].itemsize, order)
        return View(buffer, element, 0, shape, strides)

    def block(self, begins: Sequence[int], shape: Shape) -> View:
        """Return the part with a begin and a shape; a dimension of 1 stays unchanged."""
        offset = self.offset
        dims: list[int] = []
        for d, stride, begin, size in zip(self.shape, self.strides, begins, shape, strict=True):
            if d != 1:
                offset += begin * stride
            dims.append(1 if d == 1 else size)
        return replace(self, offset=offset, shape=tuple(dims))

    def reshaped(self, shape: Shape) -> View | None:
        """Return the same elements in another shape, or None if they would have to move."""
        try:
            strides = np.reshape(self._model(), shape, copy=False).strides
        except ValueError:
            return None
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def sliced(self, slices: Sequence[slice]) -> View:
        """Return the elements that slices with positive steps select."""
        offset = self.offset
        dims: list[int] = []
        strides: list[int] = []
        for d, stride, taken in zip(self.shape, self.strides, slices, strict=True):
            indices = range(d)[taken]
            offset += (indices.start if len(indices) else 0) * stride
            dims.append(len(indices))
            strides.append(stride * indices.step)
        return replace(self, offset=offset, shape=tuple(dims), strides=tuple(strides))

    def broadcast(self, shape: Shape) -> View:
        """Return the view repeated to a shape, by strides of 0."""
        strides = np.broadcast_to(self._model(), shape).strides
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def _model(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """Return an array with the view's dimensions but other memory, to compute strides with."""
        one = np.zeros(1, f"V{self.itemsize}")
        return np.lib.stride_tricks.as_strided(one, self.shape, self.strides)
