"""A submodel on one of several devices, and how it moves to another.

It moves when a device does not load it, fails while running it (NPUW_FALLBACK_EXEC), or is less
accurate than NPUW_ACC_THRESH allows. It moves for all who use it, and for good: each of their
programs follows before its next run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.devices.accuracy import Findings
from npuw_layer.execution.devices.elsewhere import Elsewhere, Place
from npuw_layer.execution.devices.run import PlacedProgram
from npuw_layer.execution.devices.stored import Head

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a submodel runs, and how it came there."""

    submodel: str
    device: str
    notes: tuple[str, ...]
    """Why it runs on no device before this one, in the order of events."""
    checked: Findings | None = None
    """What NPUW_ACC_CHECK found; None without it."""

    @property
    def accuracy(self) -> str:
        """The same in words; empty without it."""
        return "" if self.checked is None else str(self.checked)

    def __str__(self) -> str:
        parts = [self.device, *self.notes, *filter(None, [self.accuracy])]
        return "; ".join(parts)


@runtime_checkable
class ReportsPlacement(Protocol):
    """A loaded model that can tell on which of several devices it runs."""

    @property
    def placement(self) -> Placement:
        """Where it runs now, and why."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """How a submodel may move.

    Attributes:
        after: devices after its first one, in order.
        fallback: whether it moves on when a device fails at run time.
        reference: the device to compare with; "" compares with none.
        threshold: the largest NRMSE of an output that is accepted.
    """

    after: Sequence[str]
    fallback: bool
    reference: str
    threshold: float


class PlacedModel:
    """A submodel, wherever it runs; satisfies ``backends.protocols.LoadedModel``.

    Args:
        head: whose program it is.
        first: its program, loaded, or why it could not be.
        elsewhere: gets it to other devices.
        rules: when and where to.

    Raises:
        DeviceError: no device loads it, or the reference device cannot run it.
    """

    def __init__(
        self, head: Head, first: Place | RuntimeError, elsewhere: Elsewhere, rules: Rules
    ) -> None:
        self.name = head.submodel
        self.rules = rules
        self.elsewhere = elsewhere
        self._lock = threading.Lock()
        self._left = list(rules.after)
        self._notes = list(head.notes)
        self.findings = Findings()
        self.refusal = "" if isinstance(first, Place) else str(first)
        """Why the device that it was compiled for did not load it; see ``MovesOn``."""
        if isinstance(first, Place):
            self._place = first
        else:
            self._note(head.device, "does not load it", first)
            self._place = self._next_place(None)
        self.reference = self._find_reference()
        """The submodel on the reference device."""

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """Its inputs where it runs now; weights may be others elsewhere."""
        return self._place.loaded.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """Its outputs."""
        return self._place.loaded.outputs

    @property
    def place(self) -> Place:
        """Where it runs now."""
        return self._place

    @property
    def placement(self) -> Placement:
        """Where it runs now, and why."""
        with self._lock:
            checked = self.findings.copy() if self.reference is not None else None
            return Placement(self.name, self._place.device, tuple(self._notes), checked)

    def create_program(self) -> PlacedProgram:
        """Make something to run."""
        return PlacedProgram(self)

    def leave(self, place: Place, error: RuntimeError) -> Place:
        """Move on from a device that failed; give where it runs now.

        Raises:
            RuntimeError: the error itself, if it may not move.
            DeviceError: nobody is left to take it over.
        """
        if not self.rules.fallback:
            raise error
        with self._lock:
            if self._place is place:
                self._note(place.device, "failed", error)
                self._place = self._next_place(place)
                _log.warning("%s: %s takes it over", self.name, self._place.device)
            return self._place

    def judge(self, place: Place, errors: Mapping[str, float]) -> bool:
        """Take note of how far a device was off; if that is too far, move to the reference.

        Returns:
            Whether the device was accurate enough.
        """
        assert self.reference is not None
        with self._lock:
            self.findings.add(errors)
            name = max(errors, key=errors.__getitem__, default="")
            if not name or errors[name] <= self.rules.threshold:
                return True
            if self._place is place:
                why = f"NRMSE of {name} is {errors[name]:.2e}, above {self.rules.threshold:g}"
                self._note(place.device, "is not accurate", why)
                self._place = self.reference
                _log.warning("%s: %s takes it over", self.name, self.reference.device)
            return False

    def _find_reference(self) -> Place | None:
        name = self.rules.reference
        if not name or name == self._place.device:
            return None
        try:
            return self.elsewhere.place(name, self._place.loaded)
        except RuntimeError as error:
            raise DeviceError(
                f"NPUW_ACC_CHECK: {self.name} cannot be checked on {name}: {error}"
            ) from error

    def _next_place(self, place: Place | None) -> Place:
        while self._left:
            name = self._left[0]  # it stays while it compiles, which may be interrupted
            try:
                found = self.elsewhere.place(name, place.loaded if place else None)
            except RuntimeError as error:
                self._note(name, "does not take it over", error)
                found = None
            self._left.remove(name)
            if found is not None:
                return found
        reasons = "; ".join(self._notes)
        raise DeviceError(f"{self.name} runs on no device of NPUW_DEVICES: {reasons}")

    def _note(self, device: str, what: str, why: object) -> None:
        note = f"{device} {what}: {why}"
        self._notes.append(note)
        _log.warning("%s: %s", self.name, note)
