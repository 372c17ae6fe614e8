"""Locations of the weights of an offloaded model: on the host, or permanently on the device."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compiler_layer.errors import CompilerError
from compiler_layer.files import mapped_file
from compiler_layer.partition.compiled import CompiledParts
from compiler_layer.weights import WeightRef
from npuw_layer.backends.arena import nbytes, side_by_side
from npuw_layer.backends.protocols import Device, Memory, TensorInfo
from npuw_layer.errors import DeviceError, ModelError


@dataclass(frozen=True, slots=True)
class HostBytes:
    """Location of bytes."""

    memory: Memory
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class SlotLayout:
    """Layout of one layer's weights in a slot: the block's inputs, and their offsets."""

    infos: tuple[TensorInfo, ...]
    offsets: tuple[int, ...]
    nbytes: int

    @staticmethod
    def of(infos: Sequence[TensorInfo]) -> SlotLayout:
        """Lay weights side by side, by name: the same for all blobs of a model."""
        ordered = tuple(sorted(infos, key=lambda info: info.name))
        offsets, size = side_by_side(map(nbytes, ordered))
        return SlotLayout(ordered, tuple(offsets), size)


class HostWeights:
    """A model's files, in memory that the device can copy from.

    A weight whose type in a program differs from the file's is converted once and kept.

    Args:
        device: the device that copies.
        folder: folder of the model's files.
    """

    def __init__(self, device: Device, folder: Path) -> None:
        self._device = device
        self._folder = folder
        self._files: dict[str, Memory] = {}

    def layer(
        self, parts: CompiledParts, infos: Sequence[TensorInfo], number: int
    ) -> list[HostBytes]:
        """Find the weights of one layer.

        Args:
            parts: the names of the weights.
            infos: the block's weight inputs.
            number: the layer's number.

        Raises:
            ModelError: a weight cannot be read from the model's files.
            DeviceError: the device cannot access the host's memory.
        """
        found: dict[str, HostBytes] = {}
        converted: dict[str, bytes | memoryview] = {}
        for info in infos:
            if info.name in parts.literals:
                converted[info.name] = parts.literals[info.name][number]
                continue
            ref = self._ref(parts.weights[info.name][number], info)
            if ref.stored == ref.element:
                found[info.name] = HostBytes(self._file(ref.file), ref.offset, ref.size)
            else:
                converted[info.name] = self._read(ref, info)
        found |= self._staged(converted)
        places = [found[info.name] for info in infos]
        for info, place in zip(infos, places, strict=True):
            if place.nbytes != nbytes(info):
                raise ModelError(f"{info.name}: {place.nbytes} bytes do not fit; compile again")
        return places

    def content(self, info: TensorInfo) -> bytes | memoryview:
        """Return the bytes of a weight outside the layers; errors as ``layer``."""
        return self._read(self._ref(info.name, info), info)

    def _ref(self, name: str, info: TensorInfo) -> WeightRef:
        try:
            ref = WeightRef.parse(name)
            ref.check(self._folder, info.shape)
        except CompilerError as error:
            raise ModelError(str(error)) from error
        return ref

    def _read(self, ref: WeightRef, info: TensorInfo) -> bytes | memoryview:
        try:
            return ref.read(self._folder, info.shape)
        except CompilerError as error:
            raise ModelError(str(error)) from error

    def _file(self, name: str) -> Memory:
        if name not in self._files:
            data = np.frombuffer(mapped_file(str(self._folder / name)), np.uint8)
            self._files[name] = _reached(self._device.map_host(data))
        return self._files[name]

    def _staged(self, contents: dict[str, bytes | memoryview]) -> dict[str, HostBytes]:
        """Keep bytes in host memory that the device can access."""
        if not contents:
            return {}
        offsets, size = side_by_side(map(len, contents.values()))
        data = np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8)
        memory = _reached(self._device.map_host(data))
        places: dict[str, HostBytes] = {}
        for (name, content), at in zip(contents.items(), offsets, strict=True):
            data[at : at + len(content)] = np.frombuffer(content, np.uint8)
            places[name] = HostBytes(memory, at, len(content))
        return places


def _reached(memory: Memory | None) -> Memory:
    if memory is None:
        raise DeviceError("the device cannot copy host memory that does not begin at a page")
    return memory


class ResidentWeights:
    """Weights outside the layers, or shared by all of them: once, in device memory.

    Args:
        device: device that holds the weights.
        host: source of the weights.
    """

    def __init__(self, device: Device, host: HostWeights) -> None:
        self._device = device
        self._host = host
        self._places: dict[str, HostBytes] = {}
        self._lock = threading.Lock()

    def place(self, info: TensorInfo) -> HostBytes:
        """Return a weight's location; the first request copies it.

        Raises:
            ModelError: the weight cannot be read from the model's files.
            DeviceError: the device has no memory left.
        """
        with self._lock:
            found = self._places.get(info.name)
            if found is None:
                content = np.frombuffer(self._host.content(info), np.uint8)
                memory = self._device.allocate(content.size)
                memory.data[:] = content
                found = self._places[info.name] = HostBytes(memory, 0, content.size)
            return found
