"""Fixtures of the driver's tests: a device with memory and the hand-made dense layer."""

from __future__ import annotations

import numpy as np
import pytest

from driver_layer.abi.platforms import PLATFORMS
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.npu.device import Device
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.testing import blobs


class DenseBench:
    """A device that loads and runs the hand-made dense layer."""

    def __init__(self, platform: str = "4000") -> None:
        self.platform = PLATFORMS[platform]
        self.space = AddressSpace()
        self.device = Device(self.platform)

    def load(self, blob: bytes) -> HostParsedInference:
        inference = HostParsedInference(blob, self.platform)
        inference.load(self.space)
        return inference

    def buffers(self) -> tuple[int, int]:
        """Return the addresses of a new x and a new y."""
        x = self.space.allocate(blobs.ROWS * blobs.DEPTH * 4, MemoryKind.DMA)
        y = self.space.allocate(blobs.ROWS * blobs.COLS * 4, MemoryKind.DMA)
        return x.address, y.address

    def run(self, inference: HostParsedInference, x: np.ndarray) -> np.ndarray:
        """Run on new buffers; return y."""
        at_x, at_y = self.buffers()
        self.space.view(at_x, x.nbytes)[:] = x.view(np.uint8).reshape(-1)
        inference.apply_input_output([at_x], [at_y])
        self.device.run_inference(self.space, inference.address)
        raw = self.space.view(at_y, blobs.ROWS * blobs.COLS * 4).copy()
        return raw.view(np.float32).reshape(blobs.ROWS, blobs.COLS)


@pytest.fixture
def bench() -> DenseBench:
    return DenseBench()


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((blobs.ROWS, blobs.DEPTH)).astype(np.float32)
