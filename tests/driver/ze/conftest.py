"""Fixtures of the tests of Level Zero: a device, a queue, the hand-made layer, a child process."""

from __future__ import annotations

import json
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.testing.blobs import COLS, DEPTH, ROWS

DMA_BUF = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF
READ_ONLY = ze.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
SIZE = 10_000
EXPORTER = Path(__file__).with_name("exporting_process.py")
X_BYTES, Y_BYTES = ROWS * DEPTH * 4, ROWS * COLS * 4


@dataclass
class Rig:
    """The objects that run a blob: device, context, graph extension and queue."""

    device: ze.ze_device_handle_t
    context: ze.ze_context_handle_t
    table: ze.ze_graph_dditable_ext_t
    queue: ze.ze_command_queue_handle_t

    def graph(self, blob: bytes) -> ze.ze_graph_handle_t:
        desc = ze.ze_graph_desc_2_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, blob)
        return self.table.pfnCreate2(self.context, self.device, desc)

    def arguments(self, graph: ze.ze_graph_handle_t, x: np.ndarray) -> ze.Memory:
        """Set both arguments to new memory; return that of y."""
        at_x = ze.zeMemAllocHost(self.context, X_BYTES)
        at_x.data[:] = x.view(np.uint8).reshape(-1)
        at_y = ze.zeMemAllocShared(self.context, Y_BYTES, 0, self.device)
        self.table.pfnSetArgumentValue(graph, 0, at_x)
        self.table.pfnSetArgumentValue(graph, 1, at_y)
        return at_y

    def recorded(self, graph: ze.ze_graph_handle_t) -> ze.ze_command_list_handle_t:
        commands = ze.zeCommandListCreate(self.context, self.device)
        self.table.pfnAppendGraphExecute(commands, graph)
        ze.zeCommandListClose(commands)
        return commands

    def execute(self, *lists: ze.ze_command_list_handle_t) -> None:
        ze.zeCommandQueueExecuteCommandLists(self.queue, lists)
        ze.zeCommandQueueSynchronize(self.queue)

    def exportable(self, size: int = SIZE) -> ze.Memory:
        """Allocate memory that other processes can share."""
        desc = ze.ze_host_mem_alloc_desc_t(pNext=ze.ze_external_memory_export_desc_t(DMA_BUF))
        return ze.zeMemAllocHost(self.context, size, 0, desc)

    def exported_fd(self, memory: ze.Memory) -> int:
        """Return a descriptor of exportable memory."""
        asked = ze.ze_external_memory_export_fd_t(DMA_BUF)
        found = ze.zeMemGetAllocProperties(self.context, memory, asked).pNext
        assert found is not None
        return found.fd

    def imported(self, descriptor: int, size: int = SIZE, read_only: bool = False) -> ze.Memory:
        """Return the imported memory of a descriptor."""
        flags = READ_ONLY if read_only else ze.ze_host_mem_alloc_flags_t.NONE
        chained = ze.ze_external_memory_import_fd_t(DMA_BUF, descriptor)
        desc = ze.ze_host_mem_alloc_desc_t(flags, chained)
        return ze.zeMemAllocHost(self.context, size, 0, desc)

    def opened(self, handle: ze.ze_ipc_mem_handle_t) -> ze.Memory:
        """Return the memory of an IPC handle."""
        return ze.zeMemOpenIpcHandle(self.context, self.device, handle)

    @staticmethod
    def values(y: ze.Memory) -> np.ndarray:
        """Return the output of the layer."""
        return y.data.view(np.float32).reshape(ROWS, COLS)

    @staticmethod
    def fails(code: ze.ze_result_t, call: Callable[[], object]) -> ze.ZeError:
        """Assert that a call fails with a result code; return the error."""
        with pytest.raises(ze.ZeError) as caught:
            call()
        assert caught.value.code is code, caught.value
        return caught.value


@pytest.fixture
def rig() -> Rig:
    ze.zeInit(0)
    (driver,) = ze.zeDriverGet()
    (device,) = ze.zeDeviceGet(driver)
    context = ze.zeContextCreate(driver)
    table = ze.zeDriverGetExtensionFunctionAddress(driver, "ZE_extension_graph")
    return Rig(device, context, table, ze.zeCommandQueueCreate(context, device))


class Child:
    """A child process with a device, which executes calls of the test."""

    def __init__(self) -> None:
        self.wire, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, str(EXPORTER), str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def __call__(self, *call: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def handle(self, name: str) -> ze.ze_ipc_mem_handle_t:
        return ze.ze_ipc_mem_handle_t(bytes.fromhex(self("handle", name)))

    def receive(self) -> int:
        """Return the descriptor that the child sends."""
        _, (descriptor,), _, _ = socket.recv_fds(self.wire, 1, 1)
        return descriptor

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        self.kill()
        self.wire.close()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.end()


@pytest.fixture
def no_descriptors() -> Callable[[], Any]:
    """Context manager in which the process cannot open files."""

    @contextmanager
    def none() -> Generator[None, None, None]:
        before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))

    return none
