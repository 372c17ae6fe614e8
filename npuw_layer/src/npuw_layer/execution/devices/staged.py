"""Devices of their own for the kinds of an LLM's static models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import (
    Array,
    Device,
    DiffersByStage,
    FindsConstants,
    LoadedModel,
    Memory,
    UsesMemoryOf,
)
from npuw_layer.errors import DeviceError
from npuw_layer.options.stages import StageKind

if TYPE_CHECKING:
    from compiler_layer.model import Model


class StagedDevice:
    """The device of prefill models, and beside it those of others; satisfies ``Device``.

    What belongs to all, memory and weights, is that of the one device which needs its own; the
    others use its host view. Who compiles or loads a stage asks ``of_stage``.

    Args:
        devices: for each kind ("prefill", "generate", "head") what runs it.

    Raises:
        DeviceError: two of them need memory of their own.
    """

    def __init__(self, devices: Mapping[StageKind, Device]) -> None:
        self._devices = devices
        self._first = devices["prefill"]
        self._memory = _one_memory([*devices.values()])

    def of_stage(self, kind: StageKind) -> Device:
        """Give what runs the static models of one kind."""
        return self._devices[kind]

    @property
    def memory_device(self) -> Device:
        """The one whose memory all of them use."""
        return self._memory

    @property
    def version(self) -> str:
        """Those of all; where they are alike it is that of a single device."""
        return " | ".join(dict.fromkeys(device.version for device in self._devices.values()))

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a prefill model; see ``backends.protocols.Device``."""
        return self._first.compile(model, config)

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give graphs that stand for one; see ``backends.protocols.Device``."""
        return self._first.foldings(model)

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load a prefill model; see ``backends.protocols.Device``."""
        return self._first.load(program)

    def allocate(self, nbytes: int) -> Memory:
        """Take memory that all of them can use, zeroed."""
        return self._memory.allocate(nbytes)

    def map_host(self, data: Array) -> Memory | None:
        """Let them read bytes of the host in place."""
        return self._memory.map_host(data)


class ConstantFindingStages(StagedDevice):
    """The same, where programs name no file by its path (``backends.protocols.FindsConstants``)."""

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Give what a program uses in place: the same, whoever it is for, but of one in parts."""
        every = [
            [*device.constants(program)]
            for device in self._devices.values()
            if isinstance(device, FindsConstants)
        ]
        return every[0] if all(each == every[0] for each in every) else []


def staged(devices: Mapping[StageKind, Device]) -> StagedDevice:
    """Put the devices of all kinds together.

    Raises:
        DeviceError: two of them need memory of their own.
    """
    finds = all(isinstance(device, FindsConstants) for device in devices.values())
    return ConstantFindingStages(devices) if finds else StagedDevice(devices)


def device_of(device: Device, kind: StageKind) -> Device:
    """Give what runs the static models of one kind: mostly the one device for all."""
    return device.of_stage(kind) if isinstance(device, DiffersByStage) else device


def _one_memory(devices: Sequence[Device]) -> Device:
    bases = {_memory_of(base): base for base in map(_base, devices)}.values()
    own = [base for base in bases if not getattr(base, "takes_any_memory", False)]
    if len(own) > 1:
        raise DeviceError(
            "devices of several stages each need memory of their own; let one of them be the CPU"
        )
    return own[0] if own else next(iter(bases))


def _memory_of(base: Device) -> int:
    """Tell memories apart: all NPUs of one context have the same."""
    return id(base.context if isinstance(base, LevelZeroDevice) else base)


def _base(device: Device) -> Device:
    """Whose memory a device uses in the end."""
    while isinstance(device, UsesMemoryOf):
        device = device.memory_device
    return device
