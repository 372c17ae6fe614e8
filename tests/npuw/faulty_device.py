"""A device that runs another one, and spoils its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from compiler_layer.model import Model
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import (
    Array,
    Device,
    LoadedModel,
    Memory,
    Program,
    TakesAnyMemory,
    TensorInfo,
    ability,
)
from npuw_layer.errors import DeviceError

Spoil = Callable[[str, Array], None]
"""Function called with each output by name, its values in place, after each run."""


class FaultyDevice:
    """Wrapper of a device with configurable faults.

    Args:
        device: inner device.
        spoil: changes outputs.
        refuses: error of compilation; "" compiles.
        loads: whether it loads programs.
        good_runs: runs that succeed before the device is lost.
    """

    def __init__(
        self,
        device: Device,
        spoil: Spoil | None = None,
        refuses: str = "",
        loads: bool = True,
        good_runs: int = 1 << 30,
    ) -> None:
        self._device = device
        self._refuses = refuses
        self._loads = loads
        self.spoil = spoil
        self.good_runs = good_runs
        self.compiled = 0
        self.runs = 0

    @property
    def version(self) -> str:
        return f"faulty {self._device.version}"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        self.compiled += 1
        if self._refuses:
            raise DeviceError(self._refuses)
        return self._device.compile(model, config)

    def foldings(self, model: Model) -> Iterator[Model]:
        return self._device.foldings(model)

    def load(self, program: bytes | memoryview) -> LoadedModel:
        if not self._loads:
            raise DeviceError("out of device memory")
        return _Loaded(self, self._device.load(program))

    def map_host(self, data: Array) -> Memory | None:
        return self._device.map_host(data)

    def allocate(self, nbytes: int) -> Memory:
        return self._device.allocate(nbytes)

    def ability(self, protocol: type[Any]) -> Any:
        return ability(self._device, protocol) if protocol is TakesAnyMemory else None


class _Loaded:
    def __init__(self, device: FaultyDevice, loaded: LoadedModel) -> None:
        self._device = device
        self._loaded = loaded

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        return self._loaded.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        return self._loaded.outputs

    def create_program(self) -> Program:
        return _Program(self._device, self._loaded)


class _Program:
    def __init__(self, device: FaultyDevice, loaded: LoadedModel) -> None:
        self._device = device
        self._program = loaded.create_program()
        self._outputs = {info.name: info for info in loaded.outputs}
        self._values: dict[str, Array] = {}

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        self._program.bind(name, memory, offset)
        if name in self._outputs:
            info = self._outputs[name]
            kind = ELEMENT_TYPES[info.element]
            size = int(np.prod(info.shape)) * kind.itemsize
            raw = memory.data[offset : offset + size]
            self._values[name] = raw.view(kind).reshape(info.shape)

    def prepare(self) -> None:
        self._program.prepare()

    def run(self) -> None:
        if self._device.runs >= self._device.good_runs:
            raise DeviceError("ZE_RESULT_ERROR_DEVICE_LOST")
        self._device.runs += 1
        self._program.run()
        if self._device.spoil is not None:
            for name, values in self._values.items():
                self._device.spoil(name, values)
