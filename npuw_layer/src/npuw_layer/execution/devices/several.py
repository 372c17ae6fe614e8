"""Devices in order, as one: each submodel goes to the first that accepts it.

NPUW reports "Failed to compile for all devices in [NPU]". Here the log, the error and
the placement have the reason of every device that was tried.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import (
    SUBMODEL,
    Device,
    FindsConstants,
    ProfilesPrograms,
    TakesAnyMemory,
    TakesTurns,
    Urgency,
    abilities,
    ability,
)
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.execution.decorator import DeviceDecorator
from npuw_layer.execution.devices.elsewhere import Banks, Elsewhere, PlacedSubmodel
from npuw_layer.execution.devices.placed import PlacedModel, Policy
from npuw_layer.execution.devices.stored import StoredHeader, StoredProgram

if TYPE_CHECKING:
    from compiler_layer.model import Model

_log = logging.getLogger(__name__)


class SeveralDevices(DeviceDecorator):
    """Devices in order, as one device.

    Any of the devices may compile a graph, so graphs are never folded. Memory is that of the one
    device that needs its own; the others compute on the host and use its host view
    (``protocols.TakesAnyMemory``).

    Args:
        makers: make the devices, in order, by name.
        policy: rules of placement; its reference may be a device of ``reference``.
        reference: makes the reference device, if it is not one of these.

    Raises:
        DeviceError: no device is available, or two need their own memory.
    """

    def __init__(
        self,
        makers: Mapping[str, Callable[[], Device]],
        policy: Policy | None = None,
        reference: Callable[[], Device] | None = None,
    ) -> None:
        self._policy = policy or Policy()
        self._missing: dict[str, str] = {}
        """Reasons why devices are not available, by name."""
        self._devices = self._made(makers)
        self._order = list(self._devices)
        if reference is not None:
            self._devices[self._policy.reference] = reference()
        super().__init__(self._devices[self._order[0]], self._device_with_memory())
        self._banks = Banks(self.memory_device)

    def _made(self, makers: Mapping[str, Callable[[], Device]]) -> dict[str, Device]:
        made: dict[str, Device] = {}
        for name, make in makers.items():
            try:
                made[name] = make()
            except RuntimeError as error:
                self._missing[name] = f"{name} is not available: {error}"
                _log.warning("%s", self._missing[name])
        if not made:
            raise DeviceError(f"no device: {'; '.join(self._missing.values())}")
        return made

    def _device_with_memory(self) -> Device:
        own = [name for name, it in self._devices.items() if ability(it, TakesAnyMemory) is None]
        if len(own) > 1:
            raise DeviceError(f"{' and '.join(own)} each need their own memory; use one of them")
        return self._devices[own[0] if own else self._order[0]]

    @property
    def version(self) -> str:
        """Versions of all devices, and the pins, which also decide the compiling device."""
        versions = [f"{name} {self._devices[name].version}" for name in self._order]
        pins = [f"{name}:{device}" for name, device in sorted(self._policy.pins.items())]
        return " | ".join((*versions, *pins))

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a submodel for the first device that accepts it.

        Args:
            model: a static graph.
            config: as for ``protocols.Compiler``; SUBMODEL is the submodel's name.

        Raises:
            ModelError: no device accepts it; the message has the reason of each device.
        """
        submodel = config.get(SUBMODEL, "the model")
        text = model.text()
        notes = list(self._missing.values())
        for name in self._candidates(submodel):
            try:
                program = self._devices[name].compile(model.clone(), config)
            except RuntimeError as error:
                notes.append(f"{name} cannot compile it: {error}")
                _log.warning("%s: %s", submodel, notes[-1])
                continue
            head = StoredHeader(
                submodel=submodel, device=name, config=dict(config), notes=tuple(notes)
            )
            graph = zlib.compress(text.encode(), 1)
            return StoredProgram(head, program, graph).to_bytes()
        raise ModelError(f"no device of NPUW_DEVICES can compile {submodel}: {'; '.join(notes)}")

    def load(self, program: bytes | memoryview) -> PlacedModel:
        """Load a program of ``compile``, on its device or on a later one.

        Raises:
            DeviceError: the bytes are not such a program, or no device loads them.
        """
        stored = StoredProgram.parse(program)
        head = stored.head
        if head.device not in self._order:
            raise DeviceError(f"{head.submodel} was compiled for {head.device}, which is missing")
        after = self._order[self._order.index(head.device) + 1 :]
        elsewhere = Elsewhere(self._devices, self._banks, stored)
        first: PlacedSubmodel | RuntimeError
        try:
            first = PlacedSubmodel(head.device, self._devices[head.device].load(stored.program))
        except RuntimeError as error:
            first = error
        return PlacedModel(head, first, elsewhere, after, self._policy)

    def exported(self, program: bytes | memoryview) -> bytes:
        """Return a program without its graph; see ``protocols.ExportsPrograms``.

        Raises:
            DeviceError: the device's programs themselves name files.
        """
        stored = StoredProgram.parse(program)
        self._check_alone(stored.head)
        return replace(stored, graph=b"").to_bytes()

    def load_exported(self, program: bytes | memoryview) -> PlacedModel:
        """Load a program that no other device can take over; see ``protocols.ExportsPrograms``."""
        stored = StoredProgram.parse(program)
        self._check_alone(stored.head)
        if stored.graph:
            raise DeviceError(f"{stored.head.submodel} has a graph, unlike exported programs")
        return self.load(program)

    def _check_alone(self, head: StoredHeader) -> None:
        """Check that a program of this device names no file by its path."""
        if ability(self._devices.get(head.device), FindsConstants) is None:
            raise DeviceError(
                f"{head.submodel} runs on {head.device}, whose programs name files of this "
                "machine; export with another device"
            )

    def profile_programs(self) -> None:
        """Enable profiling on the devices that support it; see ``protocols.ProfilesPrograms``."""
        for device in abilities(self._devices.values(), ProfilesPrograms):
            device.profile_programs()

    def set_urgency(self, urgency: Urgency) -> bool:
        """Set the urgency on the devices that support it; see ``protocols.TakesTurns``."""
        able = abilities(self._devices.values(), TakesTurns)
        return any([device.set_urgency(urgency) for device in able])

    def _candidates(self, submodel: str) -> Sequence[str]:
        """Return the devices for a submodel: all, or from its pin on; a missing pin is ignored."""
        whole, _, _ = submodel.partition("/")  # parts of a model go to the model's pin
        pin = self._policy.pins.get(whole)
        return self._order[self._order.index(pin) :] if pin in self._order else self._order
