"""The tensors of one static model in one allocation of device memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from compiler_layer.elements import stored_bytes
from npuw_layer.backends.protocols import Array, Device, Memory, Program, TensorInfo

ALIGNMENT = 64

ELEMENT_TYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype("<f4"),
    "f16": np.dtype("<f2"),
    "bf16": np.dtype("<u2"),
    "i64": np.dtype("<i8"),
    "i32": np.dtype("<i4"),
    "boolean": np.dtype("?"),
    "u8": np.dtype("u1"),
    "i8": np.dtype("i1"),
    "f8e4m3": np.dtype("u1"),
    "f8e5m2": np.dtype("u1"),
}
"""numpy types of element types; bf16 and f8 as raw bits, f8 as OpenVINO shows it."""


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """A tensor in device memory; ``data`` is the host's view of it."""

    info: TensorInfo
    memory: Memory
    offset: int
    data: Array


class Arena:
    """Memory for some tensors of a static model.

    Args:
        device: the device of the memory.
        infos: the tensors, in memory order.
    """

    def __init__(self, device: Device, infos: Sequence[TensorInfo]) -> None:
        offsets, size = side_by_side(map(nbytes, infos))
        self._memory = device.allocate(max(size, ALIGNMENT))
        self.tensors: dict[str, DeviceTensor] = {}
        for info, offset in zip(infos, offsets, strict=True):
            raw = self._memory.data[offset : offset + nbytes(info)]
            view = raw.view(ELEMENT_TYPES[info.element]).reshape(info.shape)
            self.tensors[info.name] = DeviceTensor(info, self._memory, offset, view)

    def bind(self, program: Program) -> None:
        """Bind the tensors to a program."""
        for name, tensor in self.tensors.items():
            program.bind(name, tensor.memory, tensor.offset)

    def __getitem__(self, name: str) -> Array:
        """Return the values of a tensor."""
        return self.tensors[name].data

    def stack(self, names: Sequence[str]) -> Array:
        """View adjacent tensors of equal shape [1, ...] as one array [tensors, ...]."""
        first = self.tensors[names[0]]
        pitch = padded(nbytes(first.info))
        places = [self.tensors[name].offset for name in names]
        assert places == list(range(first.offset, first.offset + len(names) * pitch, pitch))
        view = first.data
        shape, strides = (len(names), *view.shape[1:]), (pitch, *view.strides[1:])
        return np.ndarray(shape, view.dtype, self._memory.data, first.offset, strides)

    def free(self) -> None:
        """Release the memory."""
        self._memory.free()


def padded(size: int) -> int:
    """Return the bytes from the start of a tensor to the start of the next."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def side_by_side(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Return the offsets of tensors of some sizes in one memory, and its bytes."""
    *offsets, end = accumulate(map(padded, sizes), initial=0)
    return offsets, end


def nbytes(info: TensorInfo) -> int:
    """Return the bytes of a tensor, of any element type."""
    return stored_bytes(info.element, math.prod(info.shape))
