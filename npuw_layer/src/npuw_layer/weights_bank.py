"""The weights of a model in device memory, once, whatever the number of blobs and conversations."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compiler_layer.errors import CompilerError
from compiler_layer.files import mapped_file
from compiler_layer.weights import WEIGHT_PREFIX, WeightRef
from npuw_layer.errors import ModelError
from npuw_layer.ports import Device, Memory, Program, TensorInfo


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a weight lies."""

    memory: Memory
    offset: int


class WeightsBank:
    """Lets programs find weights in device memory.

    A model's file is mapped and used in place, as a whole; what the program reads as another type
    than the file holds is converted when it is first needed.

    Args:
        device: where they lie.
        folder: where the model's files are.
    """

    def __init__(self, device: Device, folder: Path) -> None:
        self._device = device
        self._folder = folder
        self._files: dict[str, Memory | None] = {}
        self._places: dict[str, _Place] = {}
        self._lock = threading.Lock()

    def bind(self, program: Program, inputs: Sequence[TensorInfo]) -> None:
        """Let the weights that are inputs of a program be found here.

        Raises:
            ModelError: a weight cannot be read from the model's files.
            DeviceError: the device has no memory left.
        """
        for info in inputs:
            if info.name.startswith(WEIGHT_PREFIX):
                place = self._place(info)
                program.bind(info.name, place.memory, place.offset)

    @property
    def nbytes(self) -> int:
        """Bytes of device memory in use, those of mapped files among them."""
        with self._lock:
            files = [memory for memory in self._files.values() if memory is not None]
            memories = {id(one): one for one in files}
            memories |= {id(place.memory): place.memory for place in self._places.values()}
            return sum(memory.data.size for memory in memories.values())

    def _place(self, info: TensorInfo) -> _Place:
        with self._lock:
            place = self._places.get(info.name)
            if place is None:
                try:
                    place = self._find(WeightRef.parse(info.name), info)
                except CompilerError as error:
                    raise ModelError(str(error)) from error
                self._places[info.name] = place
            return place

    def _find(self, ref: WeightRef, info: TensorInfo) -> _Place:
        ref.check(self._folder, info.shape)
        if ref.stored == ref.element:
            whole = self._map(ref.file)
            if whole is not None:
                return _Place(whole, ref.offset)
        content = np.frombuffer(ref.read(self._folder, info.shape), np.uint8)
        memory = self._device.allocate(content.size)
        memory.data[:] = content
        return _Place(memory, 0)

    def _map(self, file: str) -> Memory | None:
        """Let the device reach a file; None if it cannot."""
        if file not in self._files:
            data = np.frombuffer(mapped_file(str(self._folder / file)), np.uint8)
            self._files[file] = self._device.map_host(data)
        return self._files[file]
