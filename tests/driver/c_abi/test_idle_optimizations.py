"""Memory that an idle context releases, as the public driver's tests of the same names have it.

Source: linux-npu-driver v1.32.1, validation/umd-test/test_idle_optimizations.cpp.
"""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest
from tests.driver.c_abi.library import FOREVER, SUCCESS, Rig

from driver_layer.abi.elf import SectionFlag, SectionType
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_builder, is_expected

X = np.linspace(-1, 1, ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
SCRATCH = 1 << 20
IDLE_OPTIMIZATIONS = 1
SHORT, LONG = 20, 60_000
"""Times of idleness in ms."""


def blob_with_scratch() -> bytes:
    """Return a blob with memory that it needs during an inference only."""
    builder = dense_builder()
    flags = SectionFlag.SHF_ALLOC | SectionFlag.SHF_WRITE | SectionFlag.VPU_SHF_PROC_DMA
    builder.add("buffer.DDR.0", flags=flags, kind=SectionType.SHT_NOBITS, size=SCRATCH)
    return builder.build()


class Inference:
    """A recorded inference in a context of its own."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        graph = rig.graph(blob_with_scratch())
        x, y = rig.host(), rig.host()
        for index, place in enumerate((x, y)):
            assert rig.npu.pfnSetArgumentValue(graph, index, place) == SUCCESS
        rig.view(x, X.size)[:] = X.ravel()
        self.y = rig.view(y, ROWS * COLS)
        self.commands = rig.list()
        append = rig.npu.pfnAppendGraphExecute
        assert append(self.commands, graph, None, None, 0, None) == SUCCESS
        name = rig.buffer(b"zexContextSetIdlePruningTimeout\0")
        found = rig.npu.make("zeDriverGetExtensionFunctionAddress", rig.driver, name)
        kind = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint64)
        self.set_timeout = kind(found)

    def run(self) -> None:
        self.rig.run(self.commands)

    def optimize(self, options: int) -> None:
        desc = self.rig.struct("ze_context_properties_npu_ext_t", options=options)
        assert self.rig.npu.pfnSetProperties(self.rig.context, desc) == SUCCESS

    def allocated(self) -> int:
        place = self.rig.struct("ze_graph_memory_query_t")
        assert self.rig.npu.pfnQueryContextMemory(self.rig.context, 1, place) == SUCCESS
        return self.rig.read("ze_graph_memory_query_t", place).allocated

    def released(self, full: int) -> int:
        """Return the memory that is released, of what was allocated, at once or within 10 s."""
        deadline = time.monotonic() + 10
        while (now := self.allocated()) == full and time.monotonic() < deadline:
            time.sleep(0.005)
        return full - now

    def full(self) -> int:
        """Return the memory that is allocated after an inference, before any is released."""
        self.set_timeout(self.rig.context, LONG)
        self.run()
        return self.allocated()


@pytest.fixture
def inference(rig: Rig) -> Inference:
    return Inference(rig)


def test_context_set_properties(rig, inference) -> None:
    context, full = rig.context, inference.full()
    assert inference.set_timeout(context, SHORT) == SUCCESS
    inference.run()
    assert inference.released(full) == SCRATCH
    inference.optimize(0)
    inference.run()
    time.sleep(5 * SHORT / 1000)
    assert inference.allocated() == full
    inference.optimize(IDLE_OPTIMIZATIONS)
    inference.run()
    assert inference.released(full) == SCRATCH
    inference.run()
    assert is_expected(inference.y.reshape(ROWS, -1), X)


def test_a_fence_that_is_waited_for_begins_the_time_of_idleness(rig, inference) -> None:
    full = inference.full()
    inference.set_timeout(rig.context, SHORT)
    assert rig.npu.zeCommandListClose(inference.commands) == SUCCESS
    fence = rig.npu.make("zeFenceCreate", rig.queue, rig.struct("ze_fence_desc_t"))
    lists = rig.buffer(inference.commands.to_bytes(8, "little"))
    execute = rig.npu.zeCommandQueueExecuteCommandLists
    assert execute(rig.queue, 1, lists, fence) == SUCCESS
    assert rig.npu.zeFenceHostSynchronize(fence, FOREVER) == SUCCESS
    assert inference.released(full) == SCRATCH


def test_release_memory(rig, inference) -> None:
    inference.optimize(0)
    inference.run()
    before = inference.allocated()
    assert rig.npu.pfnReleaseMemory(rig.context) == SUCCESS
    assert inference.allocated() == before - SCRATCH
    inference.run()
    assert inference.allocated() == before
    assert is_expected(inference.y.reshape(ROWS, -1), X)


@pytest.mark.parametrize("what", ["ReleaseMemory", "SetProperties"])
def test_multi_threaded_inference_and_release(rig, inference, what) -> None:
    inference.set_timeout(rig.context, 0)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            if what == "ReleaseMemory":
                assert rig.npu.pfnReleaseMemory(rig.context) == SUCCESS
            else:
                inference.optimize(IDLE_OPTIMIZATIONS)
                inference.optimize(0)

    other = threading.Thread(target=disturb)
    other.start()
    for _ in range(30):
        inference.y[:] = 0
        inference.run()
        assert is_expected(inference.y.reshape(ROWS, -1), X)
    stop.set()
    other.join()
