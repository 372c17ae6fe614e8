"""Models whose weights are inputs, as NPUW's submodels have them, on the simulated device."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.compile import compile_model
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.types import element_of, tensor
from compiler_layer.elements import from_bytes, stored_bytes, to_bytes
from compiler_layer.errors import UnsupportedModel
from compiler_layer.model import Model
from compiler_layer.pipeline import Options
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import Memory, TensorInfo

Inputs = dict[str, np.ndarray]

IDS = np.array([[3, 0, 5]])


def drawn(element: str, *shape: int) -> np.ndarray:
    draw = np.random.default_rng((len(element), *shape))
    if element in ("f16", "f32"):
        return draw.standard_normal(shape).astype(np.float16 if element == "f16" else np.float32)
    if element == "nf4":
        return draw.integers(0, 16, shape).astype(np.uint8)
    bits = int(element[1:])
    low = -(1 << bits - 1) if element[0] == "i" else 0
    return draw.integers(low, low + (1 << bits), shape).astype(np.int8 if low else np.uint8)


class Graph(GraphBuilder):
    """A model with random inputs."""

    def __init__(self, *inputs: tuple[str, str, tuple[int, ...]]) -> None:
        self.model, ports = Model.build([(n, tensor(kind, dims)) for n, kind, dims in inputs])
        super().__init__(self.model)
        self.ports = list(ports)
        self.inputs: Inputs = {
            name: IDS if kind == "i64" else drawn(kind, *dims) for name, kind, dims in inputs
        }

    def dequantized(self, stored: SSAValue, scale: SSAValue, *zeros: SSAValue) -> SSAValue:
        value = self.convert(stored, "f16")
        for zero in zeros:
            value = self.op(elementwise.Subtract, value, self.convert(zero, "f16"))
        return self.op(elementwise.Multiply, value, scale)


def on_device(model: Model, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Compile a model in f32 and run it once."""
    kinds = {port.name: element_of(port.value) for port in model.inputs}
    device = LevelZeroDevice(StaticCompiler(), "4000")
    loaded = device.load(compile_model(model, Options(precision="f32")))
    program = loaded.create_program()
    for info in loaded.inputs:
        assert info.element == kinds[info.name], "the element types of ports are a contract"
        data = to_bytes(inputs[info.name], info.element)
        memory = device.allocate(len(data))
        memory.data[:] = np.frombuffer(data, np.uint8)
        program.bind(info.name, memory, 0)
    outputs: dict[str, tuple[TensorInfo, Memory]] = {}
    for info in loaded.outputs:
        count = math.prod(info.shape)
        outputs[info.name] = info, device.allocate(stored_bytes(info.element, count))
        program.bind(info.name, outputs[info.name][1], 0)
    program.run()
    return {
        name: from_bytes(bytes(memory.data), info.element, math.prod(info.shape))
        for name, (info, memory) in outputs.items()
    }


def check(graph: Graph, result: SSAValue) -> None:
    graph.model.set_outputs([("y", result)])
    expected = Interpreter(graph.model).run(graph.inputs)["y"].astype(np.float64)
    found = on_device(graph.model, graph.inputs)["y"].reshape(expected.shape)
    assert np.abs(found - expected).max() <= 2e-3 * np.abs(expected).max()


@pytest.mark.parametrize("element", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("channels", [32, 9], ids=["paired", "odd"])
def test_a_matmul_scales_weights_by_row(element: str, channels: int) -> None:
    weights = [("w", element, (24, channels)), ("s", "f16", (24, 1)), ("z", element, (24, 1))]
    g = Graph(("x", "f32", (5, channels)), *weights)
    x, w, s, z = g.ports
    check(g, g.matmul(x, g.convert(g.dequantized(w, s, z), "f32"), True))


@pytest.mark.parametrize("element", ["i4", "i8", "nf4"])
def test_a_matmul_scales_groups_that_are_stored_first(element: str) -> None:
    g = Graph(("x", "f32", (5, 64)), ("w", element, (4, 24, 16)), ("s", "f16", (4, 24, 1)))
    x, w, s = g.ports
    rows = g.reshape(g.transpose(g.dequantized(w, s), 1, 0, 2), 24, 64)
    check(g, g.matmul(x, g.convert(rows, "f32"), True))


def test_a_matmul_reads_halves_as_they_are_stored() -> None:
    g = Graph(("x", "f32", (5, 32)), ("w", "f16", (24, 32)))
    check(g, g.matmul(g.ports[0], g.convert(g.ports[1], "f32"), True))


@pytest.mark.parametrize("element", ["f16", "f32", "i8", "i4", "nf4"])
def test_a_gather_reads_rows_of_an_input(element: str) -> None:
    g = Graph(("table", element, (7, 2, 8)), ("ids", "i64", IDS.shape))
    check(g, g.gather(g.convert(g.ports[0], "f32"), g.ports[1], 0))


def test_a_gather_reads_rows_of_a_transposed_table_at_transposed_indices() -> None:
    g = Graph(("table", "f32", (4, 7)), ("ids", "i64", IDS.shape))
    table, ids = g.ports
    pairs = g.concat([ids, ids], 0)
    check(g, g.gather(g.transpose(table, 1, 0), g.transpose(pairs, 1, 0), 0))


def test_a_model_without_outputs_is_rejected() -> None:
    model, _ = Model.build([("x", tensor("f32", (1, 4)))])
    with pytest.raises(UnsupportedModel, match="no outputs"):
        compile_model(model, Options())
