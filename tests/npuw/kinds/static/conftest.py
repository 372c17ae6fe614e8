"""Small static models, written as IRs, and the interpreter's outputs for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.kinds.static.batches import scorer
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir
from driver_layer import ze
from npuw_layer import BatchedCompiledModel, Core, RemoteContext, StaticCompiledModel

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
ROWS, WIDTH, OUT = 4, 16, 8

Arrays = Mapping[str, np.ndarray]


def classifier() -> Model:
    """Build a model with two types of inputs and outputs: table rows, scaled and multiplied."""
    draw = np.random.default_rng(1)
    shapes = [("ids", tensor("i64", (ROWS,))), ("gain", tensor("f32", (ROWS, WIDTH)))]
    model, (ids, gain) = Model.build(shapes)
    g = GraphBuilder(model)
    table = g.constant(draw.standard_normal((32, WIDTH)).astype(np.float32))
    weights = g.constant(draw.standard_normal((WIDTH, OUT)).astype(np.float32))
    hidden = g.op(elementwise.Multiply, g.gather(table, ids, 0), gain, name="hidden")
    scores = g.matmul(g.op(activation.Relu, hidden), weights, False, name="scores")
    model.set_outputs([("scores", scores), ("codes", g.convert(hidden, "i8", "codes"))])
    return model


def recurrent() -> Model:
    """Build a model with a variable that is mixed and increased, and does not start as zeros."""
    draw = np.random.default_rng(2)
    kind = tensor("f32", (ROWS, WIDTH))
    model, (x,) = Model.build([("x", kind)])
    g = GraphBuilder(model)
    start = g.constant(draw.standard_normal((ROWS, WIDTH)).astype(np.float32))
    mixing = g.constant((draw.standard_normal((WIDTH, WIDTH)) / WIDTH).astype(np.float32))
    past = variable(g, "memory", (ROWS, WIDTH), start)
    new = g.op(elementwise.Add, g.matmul(past, mixing, False), x, name="new")
    g.add(Assign.make([new], variable_id=StringAttr("memory")))
    model.set_outputs([("y", g.op(activation.Tanh, new, name="y"))])
    return model


def variable(
    g: GraphBuilder, name: str, shape: tuple[int, ...], start: SSAValue | None = None
) -> SSAValue:
    """Read a variable of f32."""
    read = ReadValue(
        operands=[[] if start is None else [start]],
        properties={"variable_id": StringAttr(name)},
        result_types=[tensor("f32", shape)],
    )
    return g.add(read).output


@dataclass(frozen=True)
class Static:
    """A model on the disk and on the NPU."""

    path: Path
    core: Core
    compiled: StaticCompiledModel

    def interpreter(self) -> Interpreter:
        """Return an interpreter with its own state, for the expected results."""
        return Interpreter(read_ir(self.path))

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Return random values for the inputs."""
        draw = np.random.default_rng(seed)
        return {
            port.any_name: draw.integers(0, 32, port.shape)
            if port.element_type == "i64"
            else draw.standard_normal(port.shape).astype(np.float32)
            for port in self.compiled.inputs
        }


Compile = Callable[..., Static]
Write = Callable[[Model], Path]


@pytest.fixture(scope="session")
def compile_static(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that writes a graph as an IR and compiles it."""

    def compile_graph(graph: Model, core: Core | None = None, **options: object) -> Static:
        path = tmp_path_factory.mktemp("static") / "model.xml"
        write_ir(graph, path)
        core = core or Core()
        compiled = core.compile_model(path, "NPU", EXACT | options)
        assert isinstance(compiled, StaticCompiledModel)
        return Static(path, core, compiled)

    return compile_graph


@pytest.fixture(scope="session")
def classify(compile_static: Compile) -> Static:
    return compile_static(classifier())


@pytest.fixture(scope="session")
def recur(compile_static: Compile) -> Static:
    return compile_static(recurrent())


@pytest.fixture(scope="session")
def graphs() -> Mapping[str, Callable[[], Model]]:
    return {"classifier": classifier, "recurrent": recurrent}


@pytest.fixture(scope="session")
def whole(compile_static: Compile, graphs: Mapping[str, Callable[[], Model]]) -> Static:
    """Return a model whose blob contains its weights."""
    return compile_static(graphs["classifier"](), CACHE_MODE="OPTIMIZE_SPEED")


@pytest.fixture(scope="session")
def stateful(compile_static: Compile, graphs: Mapping[str, Callable[[], Model]]) -> Static:
    return compile_static(graphs["recurrent"](), CACHE_MODE="OPTIMIZE_SPEED")


def assert_alike(found: Arrays, expected: Arrays) -> None:
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.fixture(scope="session")
def check_alike() -> Callable[[Arrays, Arrays], None]:
    return assert_alike


@pytest.fixture
def core() -> Core:
    return Core()


@pytest.fixture
def context(core: Core) -> RemoteContext:
    return core.get_default_context("NPU")


@pytest.fixture
def level_zero(context: RemoteContext) -> ze.ze_context_handle_t:
    return context.get_params()["L0_CONTEXT"]


@pytest.fixture(scope="session")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Return a function that writes a graph as an IR."""

    def as_ir(model: Model) -> Path:
        path = tmp_path_factory.mktemp("static") / "model.xml"
        write_ir(model, path)
        return path

    return as_ir


@pytest.fixture(scope="session")
def open_batch(write: Write) -> Path:
    """Return an IR whose batch is open."""
    return write(scorer(-1))


@pytest.fixture(scope="session")
def fixed_batch(write: Write) -> Path:
    """Return the same IR with a batch of three."""
    return write(scorer(3))


@pytest.fixture(scope="session")
def opened(open_batch: Path) -> BatchedCompiledModel:
    compiled = Core().compile_model(open_batch, "NPU", EXACT)
    assert isinstance(compiled, BatchedCompiledModel)
    return compiled
