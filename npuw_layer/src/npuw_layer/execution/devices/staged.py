"""Separate devices for the kinds of a language model's static models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import (
    Device,
    FindsConstants,
    ImportsMemory,
    TakesAnyMemory,
    abilities,
    ability,
    memory_of,
)
from npuw_layer.errors import DeviceError
from npuw_layer.execution.decorator import DeviceDecorator
from npuw_layer.options.stages import StageKind

if TYPE_CHECKING:
    from compiler_layer.model import Model


class StagedDevice(DeviceDecorator):
    """The device of prefill models, and the devices of other stages.

    Memory and weights are those of the one device that needs its own memory; the others use its
    host view. ``of_stage`` returns the device that compiles and loads a stage.

    Args:
        devices: device of each kind ("prefill", "generate", "head").

    Raises:
        DeviceError: two of them need their own memory.
    """

    LIKE_INNER = (FindsConstants,)

    def __init__(self, devices: Mapping[StageKind, Device]) -> None:
        super().__init__(devices["prefill"], _one_memory([*devices.values()]))
        self._devices = devices

    def of_stage(self, kind: StageKind) -> Device:
        """Return the device of one kind of static models."""
        return self._devices[kind]

    @property
    def version(self) -> str:
        """Versions of all devices, equal ones once: if all are equal, that of a single device."""
        return " | ".join(dict.fromkeys(device.version for device in self._devices.values()))

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield graphs that represent a prefill model; see ``protocols.Device``."""
        return self._device.foldings(model)

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Return the constant spans of a program; none if the devices differ on them."""
        every = [
            [*device.constants(program)]
            for device in abilities(self._devices.values(), FindsConstants)
        ]
        return every[0] if all(each == every[0] for each in every) else []

    def _inner_has(self, protocol: type) -> bool:
        return all(ability(device, protocol) is not None for device in self._devices.values())


def _one_memory(devices: Sequence[Device]) -> Device:
    bases = {_space(base): base for base in map(memory_of, devices)}.values()
    own = [base for base in bases if ability(base, TakesAnyMemory) is None]
    if len(own) > 1:
        raise DeviceError("several stages' devices each need their own memory; use the CPU for one")
    return own[0] if own else next(iter(bases))


def _space(base: Device) -> int:
    """Return the identity of a device's memory space: all NPUs of one context share one."""
    imports = ability(base, ImportsMemory)
    return id(base if imports is None else imports.memory_space)
