"""A submodel's graph, compiled for other devices than the one whose program it is."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.protocols import Device, LoadedModel, Program
from npuw_layer.errors import DeviceError
from npuw_layer.execution.devices.accuracy import tensors
from npuw_layer.execution.devices.stored import StoredProgram
from npuw_layer.weights.bank import WeightsBank

if TYPE_CHECKING:
    from compiler_layer.model import Model


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A submodel on a device."""

    device: str
    loaded: LoadedModel
    bank: WeightsBank | None = None
    """The weights of a graph that was compiled here; None of a program that came with its own."""


class Banks:
    """Weights for graphs that are compiled for another device, once for all of these.

    Args:
        memory: the device whose memory all can use.
    """

    def __init__(self, memory: Device) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._of: dict[Path, WeightsBank] = {}

    def of(self, folder: Path) -> WeightsBank:
        """Give the weights of the model in a folder."""
        with self._lock:
            return self._of.setdefault(folder, WeightsBank(self._memory, folder))


class Elsewhere:
    """Compiles one submodel for any of some devices.

    Args:
        devices: by name.
        banks: where weights lie.
        placed: the submodel.
    """

    def __init__(self, devices: Mapping[str, Device], banks: Banks, placed: StoredProgram) -> None:
        self._devices = devices
        self._banks = banks
        self._placed = placed

    def device(self, name: str) -> Device:
        """A device by its name."""
        return self._devices[name]

    def place(self, name: str, like: LoadedModel | None) -> Place:
        """Compile and load the submodel on a device.

        Args:
            name: the device.
            like: what it is to take the place of, with the same tensors.

        Raises:
            RuntimeError: the device does not take it; the message says why.
        """
        from compiler_layer.errors import CompilerError
        from compiler_layer.model import Model

        device = self._devices[name]
        try:
            graph = Model.parse(self._placed.graph_text())
            folder = _folder(graph)
        except CompilerError as error:
            raise DeviceError(f"the stored graph cannot be used: {error}") from error
        loaded = device.load(device.compile(graph, self._placed.head.config))
        if like is not None:
            _check_alike(loaded, like)
        return Place(name, loaded, None if folder is None else self._banks.of(folder))

    def bind_weights(self, program: Program, place: Place, bound: Collection[str]) -> None:
        """Let a program that was compiled here find the weights that nobody has bound.

        Raises:
            ModelError: a weight cannot be read from the model's files.
        """
        missing = [
            info
            for info in place.loaded.inputs
            if info.name.startswith(WEIGHT_PREFIX) and info.name not in bound
        ]
        if place.bank is not None:
            place.bank.bind(program, missing)


def _folder(graph: Model) -> Path | None:
    """The folder of the files that a graph's constants lie in; they must still be there."""
    from compiler_layer.dialects.ov.constant import Constant
    from compiler_layer.files import FileView

    views = [op.held for op in graph.body.ops if isinstance(op, Constant)]
    folders: set[Path] = set()
    for view in views:
        if isinstance(view, FileView):
            view.check()
            folders.add(Path(view.path).parent)
    if len(folders) > 1:
        raise DeviceError(f"weights lie in several folders: {', '.join(map(str, folders))}")
    return folders.pop() if folders else None


def _check_alike(found: LoadedModel, expected: LoadedModel) -> None:
    for side, other in ((found.inputs, expected.inputs), (found.outputs, expected.outputs)):
        mine, wanted = tensors(side), tensors(other)
        for name in mine.keys() | wanted.keys():
            if mine.get(name) != wanted.get(name):
                raise DeviceError(f"{name!r} is {mine.get(name)}, not {wanted.get(name)}")
