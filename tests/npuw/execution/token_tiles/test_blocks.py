"""Static models in token tiles: blocks, and models that are not blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise, reduce
from compiler_layer.dialects.ov.op import bool_attr, float_attr
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir
from driver_layer import ze
from npuw_layer import Core, StaticCompiledModel
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.level_zero_memory import DeviceMemory
from npuw_layer.backends.protocols import Device, TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.token_tiles.container import read_container, write_container
from npuw_layer.execution.token_tiles.device import RowTilesDevice
from npuw_layer.execution.token_tiles.program import LoadedRowTiles
from npuw_layer.options import parse_options

ROWS, WIDTH = 11, 16
CONFIG = parse_options({"INFERENCE_PRECISION_HINT": "f32"}).compiler_config()
CONFIG["ENABLE_WEIGHTLESS"] = "NO"
MODEL = [TensorInfo("input_ids", "i64", (1, ROWS)), TensorInfo("attention_mask", "i64", (1, 30))]


def normed(g: GraphBuilder, x: SSAValue) -> SSAValue:
    eps = {"eps": float_attr(1e-5), "eps_mode": StringAttr("INSIDE_SQRT")}
    return g.op(reduce.MVN, x, g.ints(-1), normalize_variance=bool_attr(True), **eps)


def perceptron(rows: int = ROWS, width: int = WIDTH, inner: int = 24) -> Model:
    """Build a norm, a gated MLP, and a residual sum."""
    draw = np.random.default_rng(3)
    model, (x,) = Model.build([("x", tensor("f32", (1, rows, width)))])
    g = GraphBuilder(model)

    def matrix(out: int, of: int) -> SSAValue:
        return g.constant((draw.standard_normal((out, of)) / np.sqrt(of)).astype(np.float32))

    h = normed(g, x)
    gate = g.op(activation.Sigmoid, g.matmul(h, matrix(inner, width), True))
    h = g.op(elementwise.Multiply, gate, g.matmul(h, matrix(inner, width), True))
    model.set_outputs([("y", g.op(elementwise.Add, x, g.matmul(h, matrix(width, inner), True)))])
    return model


def npu() -> LevelZeroDevice:
    return LevelZeroDevice(StaticCompiler(), "4000")


def loaded(device: Device, size: int, leaves_out: bool = True) -> LoadedRowTiles:
    tiles = RowTilesDevice(device, size, leaves_out).within(MODEL)
    made = tiles.load(tiles.compile(perceptron(), CONFIG))
    assert isinstance(made, LoadedRowTiles)
    return made


X = np.random.default_rng(5).standard_normal((1, ROWS, WIDTH)).astype(np.float32)
WHOLE = Interpreter(perceptron()).run({"x": X})["y"]


@pytest.mark.parametrize("make", [npu, InterpreterDevice])
@pytest.mark.parametrize("size", [1, 3, 4, 10])
def test_rows_equal_the_uncut_block_or_are_zero(make, size: int) -> None:
    """Tokens have any position and number; the last tile begins within another."""
    device = make()
    block = loaded(device, size)
    program, arena = block.create_program(), Arena(device, [*block.inputs, *block.outputs])
    arena.bind(program)
    arena["x"][...] = X
    for begin, end in ((0, 11), (0, 2), (9, 11), (3, 7), (0, 11), (10, 11), (5, 6)):
        arena["y"][...] = np.nan
        arena["attention_mask"][...] = 0
        arena["attention_mask"][0, :5] = 1  # stored tokens
        arena["attention_mask"][0, 30 - ROWS + begin : 30 - ROWS + end] = 1
        before = block.runs
        program.run()
        assert block.runs - before == len({row // size for row in range(begin, end)})
        found = arena["y"][0]
        assert np.abs(found[begin:end] - WHOLE[0, begin:end]).max() < 1e-5
        other = np.abs(found - WHOLE[0]).max(1) < 1e-5
        assert np.all(other | (found == 0).all(1))


def test_without_host_access_all_tiles_run() -> None:
    """Memory of zeMemAllocDevice: the host can neither read the mask nor clear rows."""
    device = npu()
    block = loaded(device, 4)
    program, arena = block.create_program(), Arena(device, [*block.inputs, *block.outputs])
    arena.bind(program)
    arena["x"][...] = X
    arena["attention_mask"][0, -ROWS] = 1
    handle = device.memory_space
    hidden = ze.zeMemAllocDevice(handle, arena["y"].nbytes, 0, handle.device)
    for memory, runs in ((arena.tensors["y"].memory, 1), (DeviceMemory(handle, hidden), 3)):
        program.bind("y", memory, arena.tensors["y"].offset if runs == 1 else 0)
        before = block.runs
        program.run()
        assert block.runs - before == runs
    ze.zeMemFree(handle, hidden)


@given(st.integers(1, ROWS - 1))
def test_tiles_cover_each_row_once_and_compute_no_other_rows(size: int) -> None:
    block = loaded(InterpreterDevice(), size, leaves_out=False)
    tiles = list(block.tiles())
    assert [row for tile in tiles for row in range(tile.own, tile.end)] == [*range(ROWS)]
    for tile in tiles:
        assert 0 <= tile.begin <= tile.own
        assert tile.end <= tile.begin + size <= ROWS
    assert [info.name for info in block.inputs] == ["x"], "no mask is needed"


def test_unbound_tensors_and_small_memory_are_errors() -> None:
    device = InterpreterDevice()
    program = loaded(device, 4).create_program()
    with pytest.raises(DeviceError, match="not bound: x, attention_mask, y"):
        program.prepare()
    for name in ("x", "attention_mask", "y"):
        program.bind(name, device.allocate(ROWS), 0)
    with pytest.raises(DeviceError, match="from its offset on"):
        program.run()
    with pytest.raises(DeviceError, match="no input or output 'z'"):
        program.bind("z", device.allocate(ROWS), 0)


@pytest.mark.parametrize("change", [{"size": 3}, {"ports": ("x", "z")}, {"ports": ("x",)}])
def test_the_program_of_another_block_is_rejected(change: dict) -> None:
    tiles = RowTilesDevice(InterpreterDevice(), 4, True)
    tiling, program = read_container(tiles.compile(perceptron(), CONFIG))
    with pytest.raises(DeviceError, match=r"NPUW_SPATIAL.* of another; compile again"):
        tiles.load(write_container(tiling.model_copy(update=change), program))


def test_a_program_of_a_tile_is_smaller() -> None:
    """Less than half, apart from the weights, which this program contains."""
    device, weights = npu(), 3 * 256 * 512 * 4
    whole, tile = (
        len(RowTilesDevice(device, size, True).compile(perceptron(1024, 256, 512), CONFIG))
        - weights
        for size in (1024, 32)
    )
    assert 0 < tile < 0.5 * whole


# Static models through NPUW.

SPATIAL = {
    "NPU_USE_NPUW": "YES",
    "INFERENCE_PRECISION_HINT": "f32",
    "NPUW_ONLINE_ISOLATE": "Op:MatMul/compute",
    "NPUW_SPATIAL": "YES",
    "NPUW_SPATIAL_NWAY": 4,
}


def readers(rows: int = 40) -> Model:
    """Build two MLPs on embeddings, with a mean of all tokens between them."""
    draw = np.random.default_rng(4)
    kinds = [("input_ids", "i64", (1, rows)), ("attention_mask", "i64", (1, rows))]
    model, (ids, mask) = Model.build([(name, tensor(kind, shape)) for name, kind, shape in kinds])
    g = GraphBuilder(model)
    x = g.gather(g.constant(draw.standard_normal((32, WIDTH)).astype(np.float32)), ids, 0)
    weight = g.unsqueeze(g.convert(mask, "f32"), 1)
    for number in range(2):
        w = g.constant(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 4)
        h = g.op(activation.Tanh, g.matmul(normed(g, x), w, True, name=f"product_{number}"))
        x = g.op(elementwise.Add, x, h)
        x = g.op(elementwise.Add, x, g.matmul(weight, x, False))
    model.set_outputs([("y", x)])
    return model


@pytest.mark.parametrize("devices", ["NPU", "CPU"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_skipped_on_either_side(tmp_path: Path, devices: str, side: str) -> None:
    path = tmp_path / "model.xml"
    write_ir(readers(), path)
    compiled = Core().compile_model(path, "NPU", SPATIAL | {"NPUW_DEVICES": devices})
    assert isinstance(compiled, StaticCompiledModel)
    tokens = slice(0, 13) if side == "left" else slice(27, 40)
    mask = np.zeros((1, 40), np.int64)
    mask[:, tokens] = 1
    given = {"input_ids": np.arange(40)[None] % 32, "attention_mask": mask}
    expected = Interpreter(readers()).run(given)["y"][:, tokens]
    found = compiled.create_infer_request().infer(given)["y"][:, tokens]
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_a_model_of_one_block_runs_in_tiles(tmp_path: Path) -> None:
    path, plan = tmp_path / "model.xml", tmp_path / "plan.xml"
    write_ir(perceptron(), path)
    options = SPATIAL | {"NPUW_ONLINE_DUMP_PLAN": str(plan)}
    compiled = Core().compile_model(path, "NPU", options)
    assert isinstance(compiled, StaticCompiledModel)
    found = compiled.create_infer_request().infer({"x": X})["y"]
    assert np.abs(found - WHOLE).max() < 1e-5
    assert 'tag="compute"' in (tmp_path / "plan.model.xml").read_text()
