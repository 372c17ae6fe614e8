"""Memory of the NPU, and how its driver's errors become npuw's."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from driver_layer import ze
from npuw_layer.errors import DeviceError
from npuw_layer.ports import Array


@contextmanager
def reported(what: str) -> Generator[None, None, None]:
    """Turn what Level Zero raises into npuw's own error."""
    try:
        yield
    except ze.ZeError as error:
        raise DeviceError(f"{what}: {error}") from error


class DeviceMemory:
    """Memory that host and NPU share; satisfies ``ports.Memory``."""

    def __init__(self, context: ze.ze_context_handle_t, memory: ze.Memory) -> None:
        self._context = context
        self._memory = memory

    @property
    def data(self) -> Array:
        """The bytes."""
        return self._memory.data

    @property
    def address(self) -> int:
        """Where the device sees it."""
        return self._memory.address

    def free(self) -> None:
        """Give it back; a second call does nothing."""
        if self._memory.alive:
            ze.zeMemFree(self._context, self._memory)
