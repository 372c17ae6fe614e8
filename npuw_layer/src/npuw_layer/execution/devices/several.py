"""Devices in order, as one: each submodel goes to the first that takes it.

The original says "Failed to compile for all devices in [NPU]"; here every device that was tried
says why, in the log, in the error, and in ``placements``.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import (
    SUBMODEL,
    Array,
    Device,
    FindsConstants,
    Memory,
    ProfilesPrograms,
    TakesTurns,
    Urgency,
)
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.execution.devices.elsewhere import Banks, Elsewhere, Place
from npuw_layer.execution.devices.placed import PlacedModel, Placement, Rules
from npuw_layer.execution.devices.stored import Head, StoredProgram

if TYPE_CHECKING:
    from compiler_layer.model import Model

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Policy:
    """Where submodels may run.

    Attributes:
        pins: the device that a submodel begins with, by the submodel's name; others begin with
            the first.
        fallback: NPUW_FALLBACK_EXEC.
        reference: NPUW_ACC_DEVICE where NPUW_ACC_CHECK is on; else "".
        threshold: NPUW_ACC_THRESH.
    """

    pins: Mapping[str, str] = field(default_factory=dict[str, str])
    fallback: bool = True
    reference: str = ""
    threshold: float = 0.01


class SeveralDevices:
    """Devices in order; satisfies ``backends.protocols.Device``.

    A graph may go to any of them, so it is never a folded one. Memory is that of the one device
    which needs its own; the others compute on the host and use its host view (a device says so by
    ``takes_any_memory``).

    Args:
        makers: make the devices, in order, by name.
        policy: where submodels may run; its reference may be none of the above.
        reference: makes the reference device, if it is none of the above.

    Raises:
        DeviceError: none of them is there, or two need memory of their own.
    """

    def __init__(
        self,
        makers: Mapping[str, Callable[[], Device]],
        policy: Policy | None = None,
        reference: Callable[[], Device] | None = None,
    ) -> None:
        self._policy = policy or Policy()
        self._missing: dict[str, str] = {}
        """Devices that are not there, and why."""
        self._devices = self._made(makers)
        self._order = list(self._devices)
        if reference is not None:
            self._devices[self._policy.reference] = reference()
        self._memory = self._device_with_memory()
        self._banks = Banks(self._memory)
        self._placed: weakref.WeakSet[PlacedModel] = weakref.WeakSet()

    def _made(self, makers: Mapping[str, Callable[[], Device]]) -> dict[str, Device]:
        made: dict[str, Device] = {}
        for name, make in makers.items():
            try:
                made[name] = make()
            except RuntimeError as error:
                self._missing[name] = f"{name} is not there: {error}"
                _log.warning("%s", self._missing[name])
        if not made:
            raise DeviceError(f"no device: {'; '.join(self._missing.values())}")
        return made

    def _device_with_memory(self) -> Device:
        own = [name for name, device in self._devices.items() if not _takes_any_memory(device)]
        if len(own) > 1:
            raise DeviceError(
                f"{' and '.join(own)} each need memory of their own; use one of them at a time"
            )
        return self._devices[own[0] if own else self._order[0]]

    @property
    def memory_device(self) -> Device:
        """The one whose memory all of them use."""
        return self._memory

    @property
    def version(self) -> str:
        """Versions of all, and what decides who compiles what."""
        versions = [f"{name} {self._devices[name].version}" for name in self._order]
        pins = [f"{name}:{device}" for name, device in sorted(self._policy.pins.items())]
        return " | ".join((*versions, *pins))

    @property
    def placements(self) -> Sequence[Placement]:
        """Where the submodels in use run, and why."""
        found = [model.placement for model in self._placed]
        return sorted(found, key=lambda placement: placement.submodel)

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a submodel for the first device that takes it.

        Args:
            model: a static graph.
            config: as for ``backends.protocols.Compiler``; SUBMODEL says what it is called.

        Raises:
            ModelError: nobody takes it; the message has the reason of each device.
        """
        submodel = config.get(SUBMODEL, "the model")
        text = model.text()
        notes = list(self._missing.values())
        for name in self._candidates(submodel):
            try:
                program = self._devices[name].compile(model.clone(), config)
            except RuntimeError as error:
                notes.append(f"{name} does not compile it: {error}")
                _log.warning("%s: %s", submodel, notes[-1])
                continue
            head = Head(submodel=submodel, device=name, config=dict(config), notes=tuple(notes))
            return StoredProgram.of(head, program, text).to_bytes()
        raise ModelError(f"no device compiles {submodel}: {'; '.join(notes)}")

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give the model itself: not every device can do with less."""
        yield model

    def load(self, program: bytes | memoryview) -> PlacedModel:
        """Load what ``compile`` made, on its device or on one after it.

        Raises:
            DeviceError: the bytes are something else, or no device loads them.
        """
        stored = StoredProgram.parse(program)
        head = stored.head
        if head.device not in self._order:
            raise DeviceError(f"{head.submodel} was compiled for {head.device}, which is not there")
        after = self._order[self._order.index(head.device) + 1 :]
        policy = self._policy
        rules = Rules(after, policy.fallback, policy.reference, policy.threshold)
        elsewhere = Elsewhere(self._devices, self._banks, stored)
        first: Place | RuntimeError
        try:
            first = Place(head.device, self._devices[head.device].load(stored.program))
        except RuntimeError as error:
            first = error
        placed = PlacedModel(head, first, elsewhere, rules)
        self._placed.add(placed)
        return placed

    def exported(self, program: bytes | memoryview) -> bytes:
        """Give a program without its graph; see ``backends.protocols.ExportsPrograms``.

        Raises:
            DeviceError: it is one of a device whose programs name files themselves.
        """
        stored = StoredProgram.parse(program)
        self._check_alone(stored.head)
        return replace(stored, graph=b"").to_bytes()

    def load_exported(self, program: bytes | memoryview) -> PlacedModel:
        """Load a program that no other device can take over; see ``ExportsPrograms``."""
        stored = StoredProgram.parse(program)
        self._check_alone(stored.head)
        if stored.graph:
            raise DeviceError(f"{stored.head.submodel} has a graph, which exported programs do not")
        return self.load(program)

    def _check_alone(self, head: Head) -> None:
        """See that a program names no file by its path."""
        if not isinstance(self._devices.get(head.device), FindsConstants):
            raise DeviceError(
                f"{head.submodel} runs on {head.device}, whose programs name files of this machine"
            )

    def allocate(self, nbytes: int) -> Memory:
        """Take memory that all of them can use, zeroed."""
        return self._memory.allocate(nbytes)

    def map_host(self, data: Array) -> Memory | None:
        """Let them read bytes of the host in place."""
        return self._memory.map_host(data)

    def profile_programs(self) -> None:
        """Let those programs tell their times whose device can; see ``ProfilesPrograms``."""
        for device in self._devices.values():
            if isinstance(device, ProfilesPrograms):
                device.profile_programs()

    def set_urgency(self, urgency: Urgency) -> bool:
        """Tell those devices that can; see ``backends.protocols.TakesTurns``."""
        able = [each for each in self._devices.values() if isinstance(each, TakesTurns)]
        return any([device.set_urgency(urgency) for device in able])

    def _candidates(self, submodel: str) -> Sequence[str]:
        """The devices for a submodel: from its pin on, or all; a pin may be on a missing one."""
        whole, _, _ = submodel.partition("/")  # parts of a model go where it is pinned
        pin = self._policy.pins.get(whole)
        return self._order[self._order.index(pin) :] if pin in self._order else self._order


def _takes_any_memory(device: Device) -> bool:
    return bool(getattr(device, "takes_any_memory", False))
