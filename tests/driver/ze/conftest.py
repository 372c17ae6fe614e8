"""What the tests of Level Zero share: a device, a queue, and the hand-made layer on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.testing.blobs import COLS, DEPTH, ROWS

X_BYTES, Y_BYTES = ROWS * DEPTH * 4, ROWS * COLS * 4


@dataclass
class Rig:
    """Everything between a blob and an answer."""

    device: ze.ze_device_handle_t
    context: ze.ze_context_handle_t
    table: ze.ze_graph_dditable_ext_t
    queue: ze.ze_command_queue_handle_t

    def graph(self, blob: bytes) -> ze.ze_graph_handle_t:
        desc = ze.ze_graph_desc_2_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, blob)
        return self.table.pfnCreate2(self.context, self.device, desc)

    def arguments(self, graph: ze.ze_graph_handle_t, x: np.ndarray) -> ze.Memory:
        """Set both arguments to new memory; give that of y."""
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

    @staticmethod
    def values(y: ze.Memory) -> np.ndarray:
        """What the layer wrote."""
        return y.data.view(np.float32).reshape(ROWS, COLS)

    @staticmethod
    def fails(code: ze.ze_result_t, call: Callable[[], object]) -> ze.ZeError:
        """Expect a result code."""
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
