"""The inputs and outputs of what the host computes: where they lie, and their values there."""

from __future__ import annotations

from collections.abc import Iterable

from npuw_layer.backends.arena import ELEMENT_TYPES, nbytes
from npuw_layer.backends.protocols import Array, Memory, TensorInfo
from npuw_layer.errors import DeviceError

Place = tuple[Memory, int]
"""A memory and an offset."""


class HostTensors:
    """Tensors by name, each in memory that it is bound to.

    Args:
        infos: which there are.
    """

    def __init__(self, infos: Iterable[TensorInfo]) -> None:
        self._infos = {info.name: info for info in infos}
        self._bound: dict[str, tuple[Array, Place]] = {}
        """The values of those that are bound, and where they lie."""

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let a tensor lie in memory.

        Raises:
            DeviceError: there is no such tensor, or it does not fit.
        """
        info = self._infos.get(name)
        if info is None:
            raise DeviceError(f"no input or output {name!r}")
        self._bound[name] = view(info, memory, offset), (memory, offset)

    def __getitem__(self, name: str) -> Array:
        """The values of a tensor that is bound."""
        return self._bound[name][0]

    def place(self, name: str) -> Place:
        """Return the memory and offset of a bound tensor."""
        return self._bound[name][1]

    def check_bound(self) -> None:
        """See that all are bound.

        Raises:
            DeviceError: some are not.
        """
        unbound = [name for name in self._infos if name not in self._bound]
        if unbound:
            raise DeviceError(f"not bound: {', '.join(unbound[:4])}")


def view(info: TensorInfo, memory: Memory, offset: int) -> Array:
    """The values of a tensor where it lies.

    Raises:
        DeviceError: the memory ends before.
    """
    raw = memory.data[offset : offset + nbytes(info)]
    if raw.size != nbytes(info):
        raise DeviceError(
            f"{info.name!r} ends behind its memory of {memory.data.size} bytes: it needs "
            f"{nbytes(info)} bytes, {raw.size} are there"
        )
    return raw.view(ELEMENT_TYPES[info.element]).reshape(info.shape)
