"""Weights bank: a model's weights in device memory, once for all blobs and conversations."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from compiler_layer.errors import CompilerError
from compiler_layer.files import mapped_file
from compiler_layer.weights import WEIGHT_PREFIX, WeightRef
from npuw_layer.backends.mapped import drop_pages
from npuw_layer.backends.protocols import Array, Device, Memory, Program, TensorInfo
from npuw_layer.errors import ModelError
from npuw_layer.weights.stored_weights import StoredWeights

_Place = tuple[Memory, int]
"""Memory of a weight, and its offset there."""


@contextmanager
def _reported() -> Generator[None, None, None]:
    """Convert errors about the model's files into npuw's own error."""
    try:
        yield
    except CompilerError as error:
        raise ModelError(str(error)) from error


class WeightsBank:
    """Weights in device memory, which programs bind to.

    A model's file is mapped completely and used in place. A weight that the program reads as
    another type than the file's is converted at its first use. Weights stored in a blob are used in
    place there.

    Args:
        device: device that holds the weights.
        folder: folder of the model's files.
        stored: weights to take from a blob instead of the files.
        check: called with names of files at the first use of one of their weights; raises a
            ModelError if a file differs from the one that the programs were compiled from.
    """

    def __init__(
        self,
        device: Device,
        folder: Path,
        stored: StoredWeights | None = None,
        check: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        self._check = check
        self._device = device
        self._folder = folder
        self._stored = stored
        self._mapped_stored: list[Memory | None] = []
        """Device memory that maps the stored weights, after its first request."""
        self._files: dict[str, Memory | None] = {}
        self._places: dict[str, _Place] = {}
        self._lock = threading.Lock()

    def bind(self, program: Program, inputs: Sequence[TensorInfo]) -> None:
        """Bind the weights among a program's inputs.

        Raises:
            ModelError: a weight cannot be read from the model's files.
            DeviceError: the device has no memory left.
        """
        for info in inputs:
            if info.name.startswith(WEIGHT_PREFIX):
                program.bind(info.name, *self._place(info))

    def to_allocate(self, inputs: Iterable[TensorInfo], in_place: bool) -> dict[str, TensorInfo]:
        """Return the weights that need their own memory.

        Args:
            inputs: inputs of programs; weights are among them.
            in_place: whether to leave out weights that the device can read in a mapped file.

        Returns:
            Weights by name, in the order of the files; the same for any order of ``inputs``.

        Raises:
            ModelError: a weight cannot be read from the model's files.
        """
        found: dict[WeightRef, TensorInfo] = {}
        with self._lock, _reported():
            for info in inputs:
                if info.name.startswith(WEIGHT_PREFIX):
                    ref = WeightRef.parse(info.name)
                    if not in_place or self._in_place(ref, info) is None:
                        found[ref] = info
        order = sorted(found, key=lambda ref: (ref.file, ref.offset, ref.name))
        return {ref.name: found[ref] for ref in order}

    def read(self, info: TensorInfo) -> Array:
        """Return a weight's bytes as the program reads them, u8; mapped if the file holds them.

        Raises:
            ModelError: the weight cannot be read from the model's files.
        """
        if self._stored is not None and info.name in self._stored:
            return self._stored.read(info.name)
        with _reported():
            content = WeightRef.parse(info.name).read(self._folder, info.shape)
        return np.frombuffer(content, np.uint8)

    def drop_pages(self, weights: Iterable[str]) -> None:
        """Drop this process's pages of the weights' files, except files that are in use."""
        stored = self._stored or ()
        files = {WeightRef.parse(name).file for name in weights if name not in stored}
        for file in files - self._files.keys():
            drop_pages(mapped_file(str(self._folder / file)))

    def place_in(self, memory: Memory, offsets: Mapping[str, int]) -> None:
        """Use memory that already holds the weights, by name."""
        with self._lock:
            for name, offset in offsets.items():
                self._places[name] = memory, offset

    @property
    def mapped_files(self) -> list[str]:
        """Real paths of the files that are used in place."""
        with self._lock:
            names = [name for name, memory in self._files.items() if memory is not None]
        return [os.path.realpath(self._folder / name) for name in names]

    def memories(self) -> list[tuple[str, Memory]]:
        """Return the device memory in use, with the mapped file or a description of the content."""
        with self._lock:
            named = [*self._files.items(), *(("blob", one) for one in self._mapped_stored)]
            found = {id(memory): (name, memory) for name, memory in named if memory is not None}
            for memory, _ in self._places.values():
                found.setdefault(id(memory), ("copied weights", memory))
        return [*found.values()]

    @property
    def nbytes(self) -> int:
        """Bytes of device memory in use, including mapped files."""
        return sum(memory.data.size for _, memory in self.memories())

    def _place(self, info: TensorInfo) -> _Place:
        with self._lock:
            place = self._places.get(info.name)
            if place is None:
                with _reported():
                    place = self._find(WeightRef.parse(info.name), info)
                self._places[info.name] = place
            return place

    def _find(self, ref: WeightRef, info: TensorInfo) -> _Place:
        place = self._in_place(ref, info)
        if place is None:
            content = self.read(info)
            memory = self._device.allocate(content.size)
            memory.data[:] = content
            place = memory, 0
        if self._stored is None or info.name not in self._stored:
            self._check(
                [ref.file]
            )  # the mapping stays valid, even if the file's name now belongs to another file
        return place

    def _in_place(self, ref: WeightRef, info: TensorInfo) -> _Place | None:
        """Find a weight that the device reads in place, in its file or the blob; else None."""
        if self._stored is not None and info.name in self._stored:
            whole, offset = (
                self._map_stored(self._stored),
                self._stored.layout.slots[info.name].offset,
            )
        else:
            ref.check(self._folder, info.shape)
            whole = self._map(ref.file) if ref.stored == ref.element else None
            offset = ref.offset
        return None if whole is None else (whole, offset)

    def _map_stored(self, stored: StoredWeights) -> Memory | None:
        if not self._mapped_stored:
            self._mapped_stored.append(self._device.map_host(stored.data))
        return self._mapped_stored[0]

    def _map(self, file: str) -> Memory | None:
        """Map a file into device memory; None if the device cannot map it."""
        if file not in self._files:
            data = np.frombuffer(mapped_file(str(self._folder / file)), np.uint8)
            self._files[file] = self._device.map_host(data)
        return self._files[file]
