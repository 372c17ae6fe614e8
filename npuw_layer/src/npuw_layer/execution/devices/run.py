"""One user's program of a submodel that may move from device to device."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.protocols import Array, Memory, Program, TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.devices.accuracy import Reference, nbytes, tensors
from npuw_layer.execution.devices.elsewhere import Place

if TYPE_CHECKING:
    from npuw_layer.execution.devices.placed import PlacedModel


class PlacedProgram:
    """A program that follows its submodel; satisfies ``backends.protocols.Program``.

    Args:
        model: the submodel.
    """

    def __init__(self, model: PlacedModel) -> None:
        self._model = model
        self._inputs, self._outputs = tensors(model.inputs), tensors(model.outputs)
        self._bound: dict[str, tuple[Memory, int]] = {}
        self._reference: Reference | None = None
        self._place = model.place
        self._program = self._enter(self._place)

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or output lie in memory of ``SeveralDevices.allocate``.

        Raises:
            DeviceError: there is no such tensor, or it does not fit.
        """
        if name in _names(self._place):
            self._program.bind(name, memory, offset)
        elif not name.startswith(WEIGHT_PREFIX):
            raise DeviceError(f"{self._model.name}: no input or output {name!r}")
        self._bound[name] = memory, offset

    def prepare(self) -> None:
        """Do now what else the first run would do.

        Raises:
            DeviceError: a tensor is not bound, or no device takes the submodel.
        """
        self._somewhere(lambda program: program.prepare())

    def run(self) -> None:
        """Execute once, to the end, wherever that succeeds.

        Raises:
            DeviceError: a tensor is not bound, or no device is left.
        """
        reference = self._model.reference
        if reference is None or self._model.place is reference:
            self._somewhere(lambda program: program.run())
        else:
            self._run_checked(reference)

    def _somewhere(self, act: Callable[[Program], None]) -> None:
        """Do something with the program, on the next device if one fails."""
        while True:
            place = self._model.place
            try:
                self._follow(place)
            except RuntimeError as error:  # there is no memory left, or a weight cannot be read
                self._model.leave(place, error)
                continue
            self._check_bound()
            try:
                return act(self._program)
            except RuntimeError as error:
                self._model.leave(self._place, error)

    def _run_checked(self, place: Place) -> None:
        """Run the reference first: the device may write over what it reads."""
        self._check_bound()
        if self._reference is None:
            elsewhere = self._model.elsewhere
            program = place.loaded.create_program()
            elsewhere.bind_weights(program, place, ())
            self._reference = Reference(elsewhere.device(place.device), place.loaded, program)
        reference = self._reference
        try:
            reference.run({name: self._raw(info) for name, info in self._inputs.items()})
        except RuntimeError as error:
            raise DeviceError(f"NPUW_ACC_DEVICE {place.device} failed: {error}") from error
        self._somewhere(lambda program: program.run())
        outputs = {name: self._raw(info) for name, info in self._outputs.items()}
        if not self._model.judge(self._place, reference.compare(outputs)):
            reference.give(outputs)

    def _follow(self, place: Place) -> None:
        """Go where the submodel has gone."""
        if place is not self._place:
            self._program, self._place = self._enter(place), place

    def _enter(self, place: Place) -> Program:
        program = place.loaded.create_program()
        here = _names(place)
        for name, (memory, offset) in self._bound.items():
            if name in here:
                program.bind(name, memory, offset)
        self._model.elsewhere.bind_weights(program, place, self._bound)
        return program

    def _check_bound(self) -> None:
        place = self._place
        # Where the submodel was compiled for another device, weights are found without the user.
        needed = (*self._inputs, *self._outputs) if place.bank else _names(place)
        unbound = [name for name in needed if name not in self._bound]
        if unbound:
            raise DeviceError(f"{self._model.name}: not bound: {', '.join(unbound[:4])}")

    def _raw(self, info: TensorInfo) -> Array:
        memory, offset = self._bound[info.name]
        return memory.data[offset : offset + nbytes(info)]


def _names(place: Place) -> Collection[str]:
    return [info.name for info in (*place.loaded.inputs, *place.loaded.outputs)]
