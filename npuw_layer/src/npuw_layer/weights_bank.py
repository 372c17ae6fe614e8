"""The weights of a model in device memory, once, whatever the number of blobs and conversations."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compiler_layer.errors import CompilerError
from compiler_layer.weights import WEIGHT_PREFIX, WeightRef
from npuw_layer.errors import ModelError
from npuw_layer.ports import Device, Memory, Program, TensorInfo


class WeightsBank:
    """Puts weights into device memory when a program first needs them.

    Args:
        device: where they lie.
        folder: where the model's files are.
    """

    def __init__(self, device: Device, folder: Path) -> None:
        self._device = device
        self._folder = folder
        self._memories: dict[str, Memory] = {}
        self._lock = threading.Lock()

    def bind(self, program: Program, inputs: Sequence[TensorInfo]) -> None:
        """Let the weights that are inputs of a program be found here.

        Raises:
            ModelError: a weight cannot be read from the model's files.
            DeviceError: the device has no memory left.
        """
        for info in inputs:
            if info.name.startswith(WEIGHT_PREFIX):
                program.bind(info.name, self._memory(info), 0)

    @property
    def nbytes(self) -> int:
        """Bytes of device memory in use."""
        with self._lock:
            return sum(memory.data.size for memory in self._memories.values())

    def _memory(self, info: TensorInfo) -> Memory:
        with self._lock:
            memory = self._memories.get(info.name)
            if memory is None:
                memory = self._memories[info.name] = self._load(info)
            return memory

    def _load(self, info: TensorInfo) -> Memory:
        try:
            ref = WeightRef.parse(info.name)
            content = np.frombuffer(ref.read(self._folder, info.shape), np.uint8)
        except CompilerError as error:
            raise ModelError(str(error)) from error
        memory = self._device.allocate(content.size)
        memory.data[:] = content
        return memory
