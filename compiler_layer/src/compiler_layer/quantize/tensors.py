"""Quantization of one weight, a block of its rows at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compiler_layer.dialects.ov.types import Shape, shape_of
from compiler_layer.elements import Array, to_bytes
from compiler_layer.errors import BadModel
from compiler_layer.files import FileView
from compiler_layer.quantize.linear import Quantized, dequantize, quantize
from compiler_layer.quantize.report import Errors
from compiler_layer.quantize.schemes import Scheme
from compiler_layer.quantize.weights import Weight
from compiler_layer.writers.files import writing
from compiler_layer.writers.stored_values import read_blocks

_BLOCK_ELEMENTS = 1 << 16
"""Elements of a block; a block and its results fit a core's cache, and avoid page faults."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """Matrix viewed as [groups, size, inner], where each vector along ``size`` has one scale."""

    shape: Shape
    """Shape of the stored values; that of the matrix if a channel has one scale."""
    scale_shape: Shape
    size: int
    inner: int

    @staticmethod
    def of(shape: Shape, summed: int, scheme: Scheme) -> Blocking:
        """Split a matrix into groups along the dimension that a matmul sums over."""
        rows, columns = shape
        size = scheme.group_size or shape[summed]
        if summed == 1:
            whole, scales, inner = (rows, columns // size, size), (rows, columns // size, 1), 1
        else:
            whole, scales = (rows // size, size, columns), (rows // size, 1, columns)
            inner = columns
        if scheme.group_size is None:
            whole, scales = shape, (rows, 1) if summed == 1 else (1, columns)
        return Blocking(whole, scales, size, inner)

    @property
    def block_elements(self) -> int:
        """Elements of a block: an even number of complete groups."""
        group = self.size * self.inner
        return 2 * group * max(1, _BLOCK_ELEMENTS // (2 * group))


class TensorFile:
    """Appender of tensors to a file; the caller removes the file when it is no longer needed.

    Args:
        path: a file that does not exist yet.

    Raises:
        CompilerUsageError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with writing(path):
            self._path.touch(exist_ok=False)

    def append(self, element: str, blocks: Iterable[Array]) -> FileView:
        """Write a tensor, given in blocks; all but the last have an even number of elements.

        Raises:
            CompilerUsageError: the file cannot be written.
        """
        with writing(self._path), self._path.open("ab") as file:
            begin = file.tell()
            for block in blocks:
                file.write(to_bytes(block, element))
            return FileView(str(self._path), begin, file.tell() - begin, element)


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """Quantized weight in a file."""

    blocking: Blocking
    values: FileView
    scale: FileView
    zero_point: FileView | None


def measure(weight: Weight, scheme: Scheme, advance: Callable[[int], object]) -> Errors:
    """Quantize a weight and return its errors only.

    Raises:
        BadModel: the weight is not finite, too large, or cannot be read.
    """
    errors = Errors()
    for _ in _blocks(weight, scheme, errors, advance):
        pass
    return errors


def store(
    weight: Weight, scheme: Scheme, file: TensorFile, advance: Callable[[int], object]
) -> tuple[StoredWeight, Errors]:
    """Quantize a weight into a file.

    Raises:
        BadModel: the weight is not finite, too large, or cannot be read.
        CompilerUsageError: the file cannot be written.
    """
    errors = Errors()
    scales: list[Array] = []
    zeros: list[Array] = []

    def values() -> Iterator[Array]:
        for block in _blocks(weight, scheme, errors, advance):
            scales.append(block.scale.reshape(-1))
            if block.zero_point is not None:
                zeros.append(block.zero_point.reshape(-1))
            yield block.values

    stored = file.append(scheme.element, values())
    scale = file.append("f16", [np.concatenate(scales)])
    zero = file.append(scheme.element, [np.concatenate(zeros)]) if zeros else None
    shape = shape_of(weight.constant.output)
    return StoredWeight(Blocking.of(shape, weight.summed, scheme), stored, scale, zero), errors


def _blocks(
    weight: Weight, scheme: Scheme, errors: Errors, advance: Callable[[int], object]
) -> Iterator[Quantized]:
    shape = shape_of(weight.constant.output)
    if not math.prod(shape):
        raise _bad(weight, "has no elements")
    blocking = Blocking.of(shape, weight.summed, scheme)
    for flat in read_blocks(weight.constant, "f32", blocking.block_elements):
        numbers = flat.reshape(-1, blocking.size, blocking.inner)
        try:
            block = quantize(numbers, scheme.element)
        except ValueError as error:
            raise _bad(weight, str(error)) from None
        errors.add(numbers, dequantize(block))
        advance(flat.size)
        yield block


def _bad(weight: Weight, message: str) -> BadModel:
    held = weight.constant.held
    source = held.path if isinstance(held, FileView) else "the model"
    return BadModel(source, message, weight.name or None)
