"""Inputs and outputs of programs on the host: their memory, and their values in it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from npuw_layer.backends.arena import ELEMENT_TYPES, nbytes, side_by_side
from npuw_layer.backends.protocols import Array, Device, Memory, TensorInfo
from npuw_layer.errors import DeviceError

_K = TypeVar("_K", bound=Hashable)

Place = tuple[Memory, int]
"""A memory and an offset."""


class HostTensors:
    """Tensors by name, each bound to memory.

    Args:
        infos: the tensors.
    """

    def __init__(self, infos: Iterable[TensorInfo]) -> None:
        self._infos = {info.name: info for info in infos}
        self._bound: dict[str, tuple[Array, Place]] = {}
        """Values and place of each bound tensor."""

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind a tensor to memory.

        Raises:
            DeviceError: no such tensor exists, or it does not fit.
        """
        info = self._infos.get(name)
        if info is None:
            raise DeviceError(f"the program has no input or output {name!r}")
        self._bound[name] = view(info, memory, offset), (memory, offset)

    def __getitem__(self, name: str) -> Array:
        """Return the values of a bound tensor."""
        return self._bound[name][0]

    def place(self, name: str) -> Place:
        """Return the memory and offset of a bound tensor."""
        return self._bound[name][1]

    def check_bound(self) -> None:
        """Check that all tensors are bound.

        Raises:
            DeviceError: a tensor is not bound.
        """
        unbound = [name for name in self._infos if name not in self._bound]
        if unbound:
            raise DeviceError(f"not bound: {', '.join(unbound[:4])}; bind all tensors before a run")


def place_contents(contents: Mapping[_K, bytes | memoryview], device: Device) -> dict[_K, Place]:
    """Copy contents into memory of a device; return the place of each."""
    if not contents:
        return {}
    offsets, size = side_by_side(map(len, contents.values()))
    memory = device.allocate(max(size, 1))
    for content, at in zip(contents.values(), offsets, strict=True):
        memory.data[at : at + len(content)] = np.frombuffer(content, np.uint8)
    return {key: (memory, at) for key, at in zip(contents, offsets, strict=True)}


def view(info: TensorInfo, memory: Memory, offset: int) -> Array:
    """View the values of a tensor in memory.

    Raises:
        DeviceError: the memory is too short.
    """
    raw = memory.data[offset : offset + nbytes(info)]
    if raw.size != nbytes(info):
        raise DeviceError(
            f"{info.name!r} needs {nbytes(info)} bytes: its memory of {memory.data.size} bytes has "
            f"{raw.size} from its offset on"
        )
    return raw.view(ELEMENT_TYPES[info.element]).reshape(info.shape)
