"""A caller of the graph extension that does what OpenVINO's NPU plugin does."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

import numpy as np

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.activation import Relu
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.in_driver.compiler import DriverCompiler
from compiler_layer.in_driver.serialized_model import write_serialized_model
from compiler_layer.model import Model
from compiler_layer.writers.openvino_ir.write import ir_bytes
from driver_layer import ze
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.loader.metadata import TensorInfo

COUNTED = {"is_new_api": "YES", "use_indices_for_io_metadata": "YES"}
"""Runtime information of the plugin's models."""


def serialized(model: Model, rt_info: Mapping[str, str] | None = None) -> bytes:
    """Serialize a model as the plugin does."""
    xml, weights = ir_bytes(model)
    root = ElementTree.fromstring(xml)
    for old in root.findall("rt_info"):
        root.remove(old)
    info = ElementTree.SubElement(root, "rt_info")
    for name, value in (COUNTED if rt_info is None else rt_info).items():
        ElementTree.SubElement(info, name, value=value)
    return write_serialized_model(DriverCompiler.version, ElementTree.tostring(root), weights)


class Dense:
    """A model ``y = relu(x @ w.T)``, of f32 [1, 4, K] and weights [N, K].

    Args:
        weights: f32 or f16.
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights
        self.x = np.random.default_rng(1).standard_normal((1, 4, weights.shape[1]))
        self.x = self.x.astype(np.float32)

    @property
    def expected(self) -> np.ndarray:
        return np.maximum(self.x @ self.weights.T.astype(np.float32), 0)

    def model(self, batch: int = 1, element: str = "f32") -> Model:
        """Return the model.

        Args:
            batch: the first dimension; -1 is dynamic.
            element: the type of the result, to which a Convert leads.
        """
        shape = (batch, 4, self.weights.shape[1])
        model, (x,) = Model.build([("x", tensor("f32", shape))])
        g = GraphBuilder(model)
        w = g.add(Constant.inline(self.weights), "weights").output
        if self.weights.dtype != np.float32:
            w = g.convert(w, "f32", "decompressed")
        y = g.op(Relu, g.matmul(x, w, True, "product"), name="relu")
        model.set_outputs([("y", y if element == "f32" else g.convert(y, element, "narrow"))])
        return model

    def serialized(self, **rt_info: object) -> bytes:
        return serialized(self.model(), COUNTED | {k: str(v) for k, v in rt_info.items()})


class Caller:
    """One context of the simulated device, with the compiler."""

    def __init__(self) -> None:
        (driver,) = ze.zeInitDrivers()
        (self.device,) = ze.zeDeviceGet(driver)
        self.context = ze.zeContextCreate(driver)
        self.table = ze.zeDriverGetExtensionFunctionAddress(driver, "ZE_extension_graph")
        self.profiling = ze.zeDriverGetExtensionFunctionAddress(
            driver, "ZE_extension_profiling_data"
        )

    def graph(self, model: bytes, flags: str = "") -> ze.ze_graph_handle_t:
        """Compile a serialized model."""
        desc = ze.ze_graph_desc_2_t(
            ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NGRAPH_LITE, model, pBuildFlags=flags
        )
        return self.table.pfnCreate2(self.context, self.device, desc)

    def infer(
        self, graph: ze.ze_graph_handle_t, *inputs: np.ndarray, query: object = None
    ) -> list[np.ndarray]:
        """Run one inference; the arrays have the types and shapes of the arguments."""
        for info, array in zip(graph.metadata.inputs, inputs, strict=True):
            assert (_storage(info), info.shape) == (array.dtype, array.shape), info.name
        memories = [ze.zeMemAllocHost(self.context, max(1, each.nbytes)) for each in graph.tensors]
        for index, memory in enumerate(memories):
            self.table.pfnSetArgumentValue(graph, index, memory)
        for memory, array in zip(memories, inputs, strict=False):
            memory.data[: array.nbytes] = np.ascontiguousarray(array).view("u1").reshape(-1)
        commands = ze.zeCommandListCreate(self.context, self.device)
        self.table.pfnAppendGraphExecute(commands, graph, query)
        ze.zeCommandListClose(commands)
        queue = ze.zeCommandQueueCreate(self.context, self.device)
        ze.zeCommandQueueExecuteCommandLists(queue, [commands])
        ze.zeCommandQueueSynchronize(queue)
        outputs = list(zip(graph.tensors, memories, strict=True))[len(inputs) :]
        return [_values(info, memory) for info, memory in outputs]


def _storage(info: TensorInfo) -> np.dtype:
    return ELEMENT_TYPES[info.element.name].storage


def _values(info: TensorInfo, memory: ze.Memory) -> np.ndarray:
    return memory.data[: info.nbytes].copy().view(_storage(info)).reshape(info.shape)
