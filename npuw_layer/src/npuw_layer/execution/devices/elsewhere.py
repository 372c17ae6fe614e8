"""A submodel's graph, compiled for other devices than its program's."""

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
class PlacedSubmodel:
    """A submodel on a device."""

    device: str
    loaded: LoadedModel
    bank: WeightsBank | None = None
    """Weights of a graph compiled here; None if no weights are in files, or for a stored
    program."""


class Banks:
    """Weights banks of graphs compiled for another device, shared by all of them.

    Args:
        memory: device whose memory all the devices can use.
    """

    def __init__(self, memory: Device) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._of: dict[Path, WeightsBank] = {}

    def of(self, folder: Path) -> WeightsBank:
        """Return the bank of the model in a folder."""
        with self._lock:
            return self._of.setdefault(folder, WeightsBank(self._memory, folder))


class Elsewhere:
    """Compiler of one submodel for other devices.

    Args:
        devices: by name.
        banks: weights banks.
        placed: the submodel's program and graph.
    """

    def __init__(self, devices: Mapping[str, Device], banks: Banks, placed: StoredProgram) -> None:
        self.devices = devices
        self._banks = banks
        self._placed = placed

    def place(self, name: str, like: LoadedModel | None) -> PlacedSubmodel:
        """Compile and load the submodel on a device.

        Args:
            name: the device.
            like: loaded model to replace, with the same tensors; None without one.

        Raises:
            RuntimeError: the device rejects the submodel; the message has the reason.
        """
        from compiler_layer.errors import CompilerError
        from compiler_layer.model import Model

        device = self.devices[name]
        try:
            graph = Model.parse(self._placed.graph_text())
            folder = _folder(graph)
        except CompilerError as error:
            raise DeviceError(f"the stored graph cannot be used: {error}") from error
        loaded = device.load(device.compile(graph, self._placed.head.config))
        if like is not None:
            _check_alike(loaded, like)
        return PlacedSubmodel(name, loaded, None if folder is None else self._banks.of(folder))

    def bind_weights(self, program: Program, place: PlacedSubmodel, bound: Collection[str]) -> None:
        """Bind the unbound weights of a program that was compiled here.

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
    """Return the folder of a graph's weight files, which must be unchanged; None without files."""
    from compiler_layer.dialects.ov.constant import Constant
    from compiler_layer.files import FileView

    views = [op.held for op in graph.body.ops if isinstance(op, Constant)]
    folders: set[Path] = set()
    for view in views:
        if isinstance(view, FileView):
            view.check()
            folders.add(Path(view.path).parent)
    if len(folders) > 1:
        raise DeviceError(f"weights are stored in several folders: {', '.join(map(str, folders))}")
    return folders.pop() if folders else None


def _check_alike(found: LoadedModel, expected: LoadedModel) -> None:
    for side, other in ((found.inputs, expected.inputs), (found.outputs, expected.outputs)):
        mine, wanted = tensors(side), tensors(other)
        for name in mine.keys() | wanted.keys():
            if mine.get(name) != wanted.get(name):
                raise DeviceError(f"{name!r} is {mine.get(name)}, not {wanted.get(name)}")
