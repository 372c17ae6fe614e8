"""A device on which an event happens at a chosen run: it fails, or the inference is cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from npuw_layer.backends.arena import nbytes
from npuw_layer.backends.protocols import Array, LoadedModel, Memory, Program
from npuw_layer.errors import DeviceError


class Moments:
    """Counter of program runs."""

    def __init__(self) -> None:
        self._left = 0
        self._happens: Callable[[], None] | None = None
        self.runs = 0

    @contextmanager
    def at_run(self, number: int, happens: Callable[[], None]) -> Iterator[None]:
        """Call a function right after a run; 1 is the next one."""
        self._left, self._happens = number, happens
        try:
            yield
        finally:
            self._happens = None

    def ran(self, program: WatchedProgram) -> None:
        """Note that a program has run."""
        self.runs += 1
        self._left -= 1
        if self._left == 0 and self._happens is not None:
            try:
                self._happens()
            except DeviceError:
                program.spoil()
                raise


def lose_device() -> None:
    """Fail like a device that resets in the middle of a run."""
    raise DeviceError("ZE_RESULT_ERROR_DEVICE_LOST")


class WatchedDevice:
    """Wrapper of a device that reports all runs.

    Args:
        device: the wrapped device.
        moments: counter of the runs.
    """

    def __init__(self, device: Any, moments: Moments) -> None:
        self._device = device
        self._moments = moments

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def load(self, program: bytes | memoryview) -> LoadedModel:
        return WatchedModel(self._device.load(program), self._moments)


class WatchedModel:
    """Wrapper of a loaded model."""

    def __init__(self, loaded: Any, moments: Moments) -> None:
        self._loaded = loaded
        self._moments = moments

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loaded, name)

    def create_program(self) -> Program:
        return WatchedProgram(self._loaded, self._moments)


class WatchedProgram:
    """Wrapper of a program; a failing run leaves NaN in its outputs."""

    def __init__(self, loaded: Any, moments: Moments) -> None:
        self._program = loaded.create_program()
        self._moments = moments
        self._sizes = {info.name: nbytes(info) for info in loaded.outputs}
        self._outputs: dict[str, Array] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        self._program.bind(name, memory, offset)
        if name in self._sizes:
            self._outputs[name] = memory.data[offset : offset + self._sizes[name]]

    def run(self) -> None:
        self._program.run()
        self._moments.ran(self)

    def spoil(self) -> None:
        """Leave bits in its outputs that are NaN in every float type."""
        for data in self._outputs.values():
            data[...] = 0xFF
