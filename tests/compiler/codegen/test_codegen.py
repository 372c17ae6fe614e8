"""Execution of generated SHAVE programs on the reference engine, compared with the interpreter."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from compiler_layer.codegen import kernel, kernel_program
from compiler_layer.codegen.program import ProgramBuilder
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import UnsupportedModel
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.testing.pass_test import parse_passes
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.platforms import tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access, Instruction, Op
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.testing.check_engines import Bench

ROW = "tensor<2x3x8xf32>"
ROWS = f"({ROW}) -> {ROW}"
PAIR = f"({ROW}, {ROW}) -> {ROW}"
TRUTH = "tensor<2x3x8xi1>"
WHOLE = "tensor<2x3x8xi64>"
SHORT = "tensor<2x3x1xf32>"

OPS = {
    "Sqrt": f"%y = ov.Sqrt(%p) : {ROWS}",
    "Exp": f"%y = ov.Exp(%x) : {ROWS}",
    "Sin": f"%y = ov.Sin(%x) : {ROWS}",
    "Cos": f"%y = ov.Cos(%x) : {ROWS}",
    "Tanh": f"%y = ov.Tanh(%x) : {ROWS}",
    "Sigmoid": f"%y = ov.Sigmoid(%x) : {ROWS}",
    "Swish": f"%y = ov.Swish(%x) : {ROWS}",
    "Negative": f"%y = ov.Negative(%x) : {ROWS}",
    "Abs": f"%y = ov.Abs(%x) : {ROWS}",
    "Floor": f"%y = ov.Floor(%x) : {ROWS}",
    "Add": f"%y = ov.Add(%x, %p) : {PAIR}",
    "Subtract": f"%y = ov.Subtract(%x, %p) : {PAIR}",
    "Multiply": f"%y = ov.Multiply(%x, %p) : {PAIR}",
    "Divide": f"%y = ov.Divide(%x, %p) : {PAIR}",
    "Minimum": f"%y = ov.Minimum(%x, %p) : {PAIR}",
    "Maximum": f"%y = ov.Maximum(%x, %p) : {PAIR}",
    "Power": f"%y = ov.Power(%p, %x) : {PAIR}",
    "Ceiling": f"%y = ov.Ceiling(%x) : {ROWS}",
    "Sign": f"%y = ov.Sign(%x) : {ROWS}",
    "Log": f"%y = ov.Log(%p) : {ROWS}",
    "Erf": f"%y = ov.Erf(%x) : {ROWS}",
    "Relu": f"%y = ov.Relu(%x) : {ROWS}",
    "Softplus": f"%y = ov.Softplus(%x) : {ROWS}",
    "HSwish": f"%y = ov.HSwish(%x) : {ROWS}",
    "Clamp": f"%y = ov.Clamp(%x) {{min = -0.5 : f64, max = 0.75 : f64}} : {ROWS}",
    "Gelu": f'%y = ov.Gelu(%x) {{approximation_mode = "ERF"}} : {ROWS}',
    "GeluTanh": f'%y = ov.Gelu(%x) {{approximation_mode = "TANH"}} : {ROWS}',
    "Round": f'%y = ov.Round(%x) {{mode = "half_to_even"}} : {ROWS}',
    "FakeQuantize": "%low = ov.Constant #ov.inline<f32 [-1.0]> : tensor<f32>\n"
    "%top = ov.Constant #ov.inline<f32 [0.0, 1.0, 2.0]> : tensor<1x3x1xf32>\n"
    "%end = ov.Constant #ov.inline<f32 [3.0]> : tensor<f32>\n"
    "%y = ov.FakeQuantize(%x, %low, %top, %low, %end) {levels = 16 : i64} : "
    f"({ROW}, tensor<f32>, tensor<1x3x1xf32>, tensor<f32>, tensor<f32>) -> {ROW}",
    "FakeConvert": "%scale = ov.Constant #ov.inline<f32 [30.0, 1.0, 400.0]> : tensor<1x3x1xf32>\n"
    "%shift = ov.Constant #ov.inline<f32 [0.5]> : tensor<f32>\n"
    '%y = ov.FakeConvert(%x, %scale, %shift) {destination_type = "f8e4m3"} : '
    f"({ROW}, tensor<1x3x1xf32>, tensor<f32>) -> {ROW}",
    **{
        f"To{kind}": f'%b = ov.Convert(%x) {{destination_type = "{kind}"}} : '
        f"({ROW}) -> tensor<2x3x8x{name}>\n"
        f'%y = ov.Convert(%b) {{destination_type = "f32"}} : (tensor<2x3x8x{name}>) -> {ROW}'
        for kind, name in (("f8e4m3", "f8E4M3FN"), ("f8e5m2", "f8E5M2"))
    },
    "RoundAway": f'%y = ov.Round(%x) {{mode = "half_away_from_zero"}} : {ROWS}',
    "WholeOffset": f'%b = ov.Convert(%x) {{destination_type = "i64"}} : ({ROW}) -> {WHOLE}\n'
    "%c = ov.Constant #ov.inline<i64 [-3]> : tensor<1x1x1xi64>\n"
    f"%d = ov.Add(%b, %c) : ({WHOLE}, tensor<1x1x1xi64>) -> {WHOLE}\n"
    f'%y = ov.Convert(%d) {{destination_type = "f32"}} : ({WHOLE}) -> {ROW}',
    "Mod": f"%y = ov.Mod(%x, %p) : {PAIR}",
    "FloorMod": f"%y = ov.FloorMod(%x, %p) : {PAIR}",
    "SquaredDifference": f"%y = ov.SquaredDifference(%x, %p) : {PAIR}",
    "LogSoftmax": f"%y = ov.LogSoftmax(%x) {{axis = -1 : i64}} : {ROWS}",
    **{
        f"MVN{mode}{variance}": f"%axis = ov.Constant #ov.inline<i64 [-1]> : tensor<1xi64>\n"
        f'%y = ov.MVN(%x, %axis) {{eps = 0.01 : f64, eps_mode = "{mode}", '
        f"normalize_variance = {variance}}} : ({ROW}, tensor<1xi64>) -> {ROW}"
        for mode in ("inside_sqrt", "outside_sqrt")
        for variance in ("true", "false")
    },
    **{
        name: f"%b = ov.Less(%x, %p) : ({ROW}, {ROW}) -> {TRUTH}\n"
        f"%n = ov.Negative(%x) : {ROWS}\n"
        f"%c = ov.Greater(%x, %n) : ({ROW}, {ROW}) -> {TRUTH}\n"
        f"%d = ov.{name}(%b, %c) : ({TRUTH}, {TRUTH}) -> {TRUTH}\n"
        f"%y = ov.Select(%d, %x, %p) : ({TRUTH}, {ROW}, {ROW}) -> {ROW}"
        for kind in ("Logical", "Bitwise")
        for name in (f"{kind}Or", f"{kind}Xor", f"{kind}And")
    },
    **{
        name: f"%b = ov.Less(%x, %p) : ({ROW}, {ROW}) -> {TRUTH}\n"
        f"%d = ov.{name}(%b) : ({TRUTH}) -> {TRUTH}\n"
        f"%y = ov.Select(%d, %x, %p) : ({TRUTH}, {ROW}, {ROW}) -> {ROW}"
        for name in ("LogicalNot", "BitwiseNot")
    },
    **{
        name: f"%b = ov.Less(%x, %p) : ({ROW}, {ROW}) -> {TRUTH}\n"
        "%axis = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>\n"
        f"%d = ov.{name}(%b, %axis) {{keep_dims = true}} : "
        f"({TRUTH}, tensor<1xi64>) -> tensor<2x3x1xi1>\n"
        f"%y = ov.Select(%d, %x, %p) : (tensor<2x3x1xi1>, {ROW}, {ROW}) -> {ROW}"
        for name in ("ReduceLogicalAnd", "ReduceLogicalOr")
    },
    "Softmax": f"%y = ov.Softmax(%x) {{axis = -1 : i64}} : {ROWS}",
    "RMS": f"%y = ov.RMS(%x) {{epsilon = 0.01 : f64}} : {ROWS}",
    "RoPE": f"%y = ov.RoPE(%x, %p, %x) : ({ROW}, {ROW}, {ROW}) -> {ROW}",
    **{
        f"CumSum{number}": "%axis = ov.Constant #ov.inline<i64 [2]> : tensor<i64>\n"
        f"%y = ov.CumSum(%x, %axis) {{exclusive = {exclusive}, reverse = {reverse}}} : "
        f"({ROW}, tensor<i64>) -> {ROW}"
        for number, (exclusive, reverse) in enumerate(
            (("false", "false"), ("true", "false"), ("false", "true"), ("true", "true"))
        )
    },
    "ToTruth": f'%b = ov.Convert(%x) {{destination_type = "boolean"}} : ({ROW}) -> {TRUTH}\n'
    f'%y = ov.Convert(%b) {{destination_type = "f32"}} : ({TRUTH}) -> {ROW}',
    "ToInteger": f'%b = ov.Convert(%x) {{destination_type = "i64"}} : ({ROW}) -> {WHOLE}\n'
    f'%y = ov.Convert(%b) {{destination_type = "f32"}} : ({WHOLE}) -> {ROW}',
    "ToIntegerClamped": "%a = ov.Clamp(%x) {min = -1.0 : f64, max = 1.5 : f64} : "
    f'{ROWS}\n%b = ov.Convert(%a) {{destination_type = "i64"}} : ({ROW}) -> {WHOLE}\n'
    f'%y = ov.Convert(%b) {{destination_type = "f32"}} : ({WHOLE}) -> {ROW}',
    "ToIntegerRounded": f'%r = ov.Round(%x) {{mode = "half_to_even"}} : {ROWS}\n'
    f"%a = ov.Clamp(%r) {{min = -1.0 : f64, max = 2.0 : f64}} : {ROWS}\n"
    f'%b = ov.Convert(%a) {{destination_type = "i64"}} : ({ROW}) -> {WHOLE}\n'
    f'%y = ov.Convert(%b) {{destination_type = "f32"}} : ({WHOLE}) -> {ROW}',
    **{
        name: f"%b = ov.{name}(%x, %p) : ({ROW}, {ROW}) -> {TRUTH}\n"
        f"%y = ov.Select(%b, %x, %p) : ({TRUTH}, {ROW}, {ROW}) -> {ROW}"
        for name in ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
    },
    **{
        name: f"%axis = ov.Constant #ov.inline<i64 [-1]> : tensor<1xi64>\n"
        f"%r = ov.{name}(%x, %axis) {{keep_dims = true}} : ({ROW}, tensor<1xi64>) -> {SHORT}\n"
        f"%y = ov.Subtract(%x, %r) : ({ROW}, {SHORT}) -> {ROW}"
        for name in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2")
    },
}


def run_kernels(model: Model, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run a model with a single kernel on the reference engine."""
    (kernel,) = [op for op in model.body.ops if isinstance(op, npu.Kernel)]
    bench = Bench.make(ReferenceEngines())
    grid = kernel.domain[:-1]
    head = np.zeros(1, KERNEL_ARGS)
    values = [*kernel.inputs, *kernel.outputs]
    head["window_count"], head["grid"] = len(values), (1, *grid)
    names = {port.value: port.name for port in model.inputs}
    windows = np.zeros(len(values), WINDOW)
    for number, value in enumerate(values):
        shape = shape_of(value)
        kind = ELEMENT_TYPES[element_of(value)]
        dense = np.zeros(shape, kind.storage).strides
        steps = [0 if d == 1 else s for d, s in zip(shape, dense, strict=True)]
        windows[number] = (
            tile_base(0) + number * 0x1000,
            shape[-1],
            kind.storage.itemsize,
            (0, *steps[:-1]),
            kind.code,
            Access.READ | Access.WRITE,
        )
        if value in names:
            bench.cmx(number * 0x1000, inputs[names[value]].astype(kind.storage))
        elif isinstance(value.owner, Constant):
            bench.cmx(number * 0x1000, value.owner.load())
    program = kernel_program(kernel)
    bench.engines.shave(program, head.tobytes() + windows.tobytes(), 0, bench.bus)()
    results: list[np.ndarray] = []
    for number, value in enumerate(kernel.outputs, len(kernel.inputs)):
        kind = ELEMENT_TYPES[element_of(value)].storage.str
        shape = shape_of(value)
        raw = bench.read(tile_base(0) + number * 0x1000, kind, int(np.prod(shape)))
        results.append(raw.reshape(shape))
    return results


def compare(body: str, result: str = ROW) -> None:
    text = (
        f'func.func @main(%x: {ROW} {{ov.names = "x"}}, %p: {ROW} {{ov.names = "p"}})'
        f' -> ({result} {{ov.names = "y"}}) {{\n{body}\nfunc.return %y : {result}\n}}'
    )
    model = Model.parse(text)
    random = np.random.RandomState(0)
    x = (2 * random.standard_normal((2, 3, 8))).astype(np.float32)
    p = np.abs(random.standard_normal((2, 3, 8))).astype(np.float32) + np.float32(0.1)
    p[0, 0] = x[0, 0]
    p = np.abs(p)
    inputs = {"x": x, "p": p}
    expected = Interpreter(model).run(inputs)["y"]
    for each in parse_passes("form-kernels,fuse-kernels"):
        each.apply(None, model.module)  # pyright: ignore[reportArgumentType]
    (actual,) = run_kernels(model, inputs)
    assert np.isfinite(actual).all()
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-6)


def test_every_op_of_a_kernel_has_a_case() -> None:
    """Dequantize is tested with the weights that it reads: tests/compiler/quantize."""
    cases = {name for text in OPS.values() for name in re.findall(r"= ov\.(\w+)", text)}
    assert {op.__name__ for op in kernel.EMIT} - cases == {"Dequantize"}


@pytest.mark.parametrize("name", OPS)
def test_an_op_on_shave_matches_the_interpreter(name: str) -> None:
    compare(OPS[name])


def test_a_chain_of_fused_ops_is_one_program() -> None:
    compare(
        f"%a = ov.Add(%x, %p) : {PAIR}\n"
        f"%b = ov.Swish(%a) : {ROWS}\n"
        f"%c = ov.RMS(%b) {{epsilon = 0.01 : f64}} : {ROWS}\n"
        f"%y = ov.Multiply(%c, %a) : {PAIR}"
    )


def test_a_fully_masked_row_becomes_zeros_and_not_nan() -> None:
    """Division by a tiny number makes every score minus infinity."""
    compare(
        f"%low = ov.Constant #ov.inline<f32 [-1.0e30]> : tensor<f32>\n"
        f"%tiny = ov.Constant #ov.inline<f32 [1.0e-30]> : tensor<f32>\n"
        f"%m = ov.Multiply(%p, %low) : ({ROW}, tensor<f32>) -> {ROW}\n"
        f"%n = ov.Divide(%m, %tiny) : ({ROW}, tensor<f32>) -> {ROW}\n"
        f"%y = ov.Softmax(%n) {{axis = -1 : i64}} : {ROWS}"
    )


def _live_at_once(count: int) -> Sequence[Instruction]:
    program = ProgramBuilder()
    values = [program.load(0) for _ in range(count)]
    total = values[0]
    for value in values[1:]:
        total = program.compute(Op.ADD, total, value)
    program.store(1, total)
    return program.finish()


def test_registers_are_reused_and_their_number_is_limited() -> None:
    assert len(_live_at_once(32)) == 32 + 31 + 2
    with pytest.raises(UnsupportedModel, match="more than 32 registers"):
        _live_at_once(33)


def test_dead_instructions_are_removed() -> None:
    program = ProgramBuilder()
    x = program.load(0)
    program.compute(Op.EXP, x)
    program.store(1, x)
    assert [i.op for i in program.finish()] == [Op.LD, Op.ST, Op.END]
