"""A submodel on one of several devices, and its move to another.

It moves when a device does not load it, fails in a run (NPUW_FALLBACK_EXEC), or exceeds the error
NPUW_ACC_THRESH. The move is permanent and for all users: each of their programs follows before its
next run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import nbytes
from npuw_layer.backends.protocols import Array, Memory, Program, TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.devices.accuracy import Findings, Reference, tensors
from npuw_layer.execution.devices.elsewhere import Elsewhere, PlacedSubmodel
from npuw_layer.execution.devices.report import Placement
from npuw_layer.execution.devices.stored import StoredHeader

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules of placement.

    Attributes:
        pins: first device of a submodel, by the submodel's name; others begin with the first
            device.
        fallback: NPUW_FALLBACK_EXEC: whether submodels leave a device that fails at run time.
        reference: NPUW_ACC_DEVICE if NPUW_ACC_CHECK is on; else "".
        threshold: NPUW_ACC_THRESH: the largest accepted NRMSE of an output.
    """

    pins: Mapping[str, str] = field(default_factory=dict[str, str])
    fallback: bool = True
    reference: str = ""
    threshold: float = 0.01


class PlacedModel:
    """A submodel, wherever it runs; satisfies ``protocols.LoadedModel``.

    Args:
        head: description of its program.
        first: its loaded program, or the error of loading it.
        elsewhere: compiles it for other devices.
        after: devices after its first one, in order.
        policy: conditions of its moves.

    Raises:
        DeviceError: no device loads it, or the reference device cannot run it.
    """

    def __init__(
        self,
        head: StoredHeader,
        first: PlacedSubmodel | RuntimeError,
        elsewhere: Elsewhere,
        after: Sequence[str],
        policy: Policy,
    ) -> None:
        self.name = head.submodel
        self._policy = policy
        self.elsewhere = elsewhere
        self._lock = threading.Lock()
        self._left = list(after)
        self._notes = list(head.notes)
        self.findings = Findings()
        self.refusal = "" if isinstance(first, PlacedSubmodel) else str(first)
        """Error of its first device in loading it, or ""; see ``protocols.MovesOn``."""
        if isinstance(first, PlacedSubmodel):
            self.place = first
            """Current device, and the submodel loaded there."""
        else:
            self._note(head.device, "cannot load it", first)
            self.place = self._next_place(None)
        self.reference = self._find_reference()
        """The submodel on the reference device; None without a comparison."""

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """Inputs on its current device; another device may have other weights."""
        return self.place.loaded.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """Outputs of the submodel."""
        return self.place.loaded.outputs

    @property
    def placement(self) -> Placement:
        """Current device, and the reasons for it."""
        with self._lock:
            checked = (
                replace(self.findings, worst={**self.findings.worst})
                if self.reference is not None
                else None
            )
            return Placement(self.name, self.place.device, tuple(self._notes), checked)

    def create_program(self) -> PlacedProgram:
        """Create a runnable program."""
        return PlacedProgram(self)

    def leave(self, place: PlacedSubmodel, error: RuntimeError) -> PlacedSubmodel:
        """Move away from a device that failed; return the current place.

        Raises:
            RuntimeError: the device's error, if moves are disabled.
            DeviceError: no device is left.
        """
        if not self._policy.fallback:
            raise error
        with self._lock:
            if self.place is place:
                self._note(place.device, "failed", error)
                self.place = self._next_place(place)
                _log.warning("%s: %s takes it over", self.name, self.place.device)
            return self.place

    def judge(self, place: PlacedSubmodel, errors: Mapping[str, float]) -> bool:
        """Record a device's errors; if one exceeds the threshold, move to the reference device.

        Returns:
            Whether the device was accurate enough.
        """
        assert self.reference is not None
        with self._lock:
            self.findings.add(errors)
            name = max(errors, key=errors.__getitem__, default="")
            if not name or errors[name] <= self._policy.threshold:
                return True
            if self.place is place:
                why = f"NRMSE of {name} is {errors[name]:.2e}, above {self._policy.threshold:g}"
                self._note(place.device, "is inaccurate", why)
                self.place = self.reference
                _log.warning("%s: %s takes it over", self.name, self.reference.device)
            return False

    def _find_reference(self) -> PlacedSubmodel | None:
        name = self._policy.reference
        if not name or name == self.place.device:
            return None
        try:
            return self.elsewhere.place(name, self.place.loaded)
        except RuntimeError as error:
            raise DeviceError(
                f"NPUW_ACC_CHECK: {self.name} cannot be checked on {name}: {error}"
            ) from error

    def _next_place(self, place: PlacedSubmodel | None) -> PlacedSubmodel:
        while self._left:
            name = self._left[0]  # removed only after compilation, which may be interrupted
            try:
                found = self.elsewhere.place(name, place.loaded if place else None)
            except RuntimeError as error:
                self._note(name, "cannot take it over", error)
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


class PlacedProgram:
    """A program that follows its submodel; satisfies ``protocols.Program``."""

    def __init__(self, model: PlacedModel) -> None:
        self._model = model
        self._inputs, self._outputs = tensors(model.inputs), tensors(model.outputs)
        self._bound: dict[str, tuple[Memory, int]] = {}
        self._reference: Reference | None = None
        self._place = model.place
        self._program = self._enter(self._place)

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory of ``SeveralDevices.allocate``.

        Raises:
            DeviceError: no such tensor exists, or it does not fit.
        """
        if name in _names(self._place):
            self._program.bind(name, memory, offset)
        elif not name.startswith(WEIGHT_PREFIX):
            raise DeviceError(f"{self._model.name}: no input or output {name!r}")
        self._bound[name] = memory, offset

    def prepare(self) -> None:
        """Do the remaining preparations of the first run.

        Raises:
            DeviceError: a tensor is not bound, or no device accepts the submodel.
        """
        self._somewhere(lambda program: program.prepare())

    def run(self) -> None:
        """Execute once, to the end, on the first device that succeeds.

        Raises:
            DeviceError: a tensor is not bound, or no device is left.
        """
        reference = self._model.reference
        if reference is None or self._model.place is reference:
            self._somewhere(lambda program: program.run())
        else:
            self._run_checked(reference)

    def _somewhere(self, act: Callable[[Program], None]) -> None:
        """Call a function with the program, on the next device if one fails."""
        while True:
            place = self._model.place
            try:
                if place is not self._place:
                    self._program, self._place = self._enter(place), place
            except RuntimeError as error:  # no memory is left, or a weight cannot be read
                self._model.leave(place, error)
                continue
            self._check_bound()
            try:
                return act(self._program)
            except RuntimeError as error:
                self._model.leave(self._place, error)

    def _run_checked(self, place: PlacedSubmodel) -> None:
        """Run the reference before the device, which may overwrite its inputs; then compare."""
        self._check_bound()
        if self._reference is None:
            elsewhere = self._model.elsewhere
            program = place.loaded.create_program()
            elsewhere.bind_weights(program, place, ())
            self._reference = Reference(elsewhere.devices[place.device], place.loaded, program)
        reference = self._reference
        try:
            reference.run({name: self._raw(info) for name, info in self._inputs.items()})
        except RuntimeError as error:
            raise DeviceError(f"NPUW_ACC_DEVICE {place.device} failed: {error}") from error
        self._somewhere(lambda program: program.run())
        outputs = {name: self._raw(info) for name, info in self._outputs.items()}
        if not self._model.judge(self._place, reference.compare(outputs)):
            reference.give(outputs)

    def _enter(self, place: PlacedSubmodel) -> Program:
        program = place.loaded.create_program()
        here = _names(place)
        for name, (memory, offset) in self._bound.items():
            if name in here:
                program.bind(name, memory, offset)
        self._model.elsewhere.bind_weights(program, place, self._bound)
        return program

    def _check_bound(self) -> None:
        place = self._place
        # A submodel compiled for another device reads its weights itself.
        needed = (*self._inputs, *self._outputs) if place.bank else _names(place)
        unbound = [name for name in needed if name not in self._bound]
        if unbound:
            raise DeviceError(f"{self._model.name}: not bound: {', '.join(unbound[:4])}")

    def _raw(self, info: TensorInfo) -> Array:
        memory, offset = self._bound[info.name]
        return memory.data[offset : offset + nbytes(info)]


def _names(place: PlacedSubmodel) -> Collection[str]:
    return [info.name for info in (*place.loaded.inputs, *place.loaded.outputs)]
