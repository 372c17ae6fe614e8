"""Unsupported operations are all reported together, before any work is done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset15 as op
import pytest

from compiler_layer.builder import GraphBuilder
from compiler_layer.compile import compile_model
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.errors import CompilerError, UnsupportedOps
from compiler_layer.files import FileView
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.frontends.openvino_ir.ops import input_counts
from compiler_layer.frontends.openvino_ir.rules import RULES
from compiler_layer.model import Model
from compiler_layer.passes.check_supported import refusal
from compiler_layer.pipeline import Options

SEED = Path(__file__).parent / "frontends" / "corpus" / "seed.xml"


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    """Copy of an IR to be changed; its weights are a link."""
    copy = tmp_path / "model.xml"
    copy.write_bytes(SEED.read_bytes())
    copy.with_suffix(".bin").symlink_to(SEED.with_suffix(".bin"))
    return copy


def refused(xml: Path, *changes: tuple[str, str]) -> UnsupportedOps:
    text = xml.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    xml.write_text(text)
    with pytest.raises(UnsupportedOps) as raised:
        read_ir(xml)
    return raised.value


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('type="Sqrt" version="opset1"', 'type="Sqrt" version="opset99"', "Sqrt-99"),
        ('type="Sqrt"', 'type="Lgamma"', "Lgamma-1"),
        ('mode="half_to_even"', 'mode="up"', "Round-5 with mode 'up'"),
        ('mode="numpy"', 'mode="explicit"', "Broadcast-3 with mode 'explicit'"),
        ('auto_broadcast="numpy"', 'auto_broadcast="pdpd"', "with auto_broadcast 'pdpd'"),
        ('eps_mode="INSIDE_SQRT"', 'eps_mode="nowhere"', "MVN-6 with eps_mode 'nowhere'"),
        ('approximation_mode="TANH"', 'approximation_mode="X"', "Gelu-7 with approximation_mode"),
        ('destination_type="f16"', 'destination_type="f8e8m0"', "Convert-1 of f8e8m0"),
        ('precision="FP16"', 'precision="F8E8M0"', "Const-1 of F8E8M0"),
        ('element_type="u4"', 'element_type="f4e2m1"', "Const-1 of f4e2m1"),
        ('variable_type="f32"', 'variable_type="string"', "ReadValue-6 of string"),
    ],
)
def test_an_unsupported_value_is_named(xml: Path, old: str, new: str, says: str) -> None:
    assert says in str(refused(xml, (old, new)))


def resampling(folder: Path, element: type = np.float32, **changes: Any) -> Path:
    """Write an IR with an Interpolate of all defaults, except for the changes."""
    x = op.parameter([1, 2, 4, 6], element, name="x")
    sizes, axes = (op.constant(np.array(each)) for each in ([7, 3], [2, 3]))
    said = {"mode": "linear_onnx", "shape_calculation_mode": "sizes"} | changes
    resized = op.interpolate(x, sizes, axes=axes, **said)
    resized.set_friendly_name("resize")
    ov.save_model(ov.Model([resized], [x]), folder / "model.xml")
    return folder / "model.xml"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"mode": "cubic"}, "Interpolate-11 with mode 'cubic'"),
        ({"mode": "bilinear_pillow"}, "Interpolate-11 with mode 'bilinear_pillow'"),
        ({"mode": "linear", "antialias": True}, "Interpolate-11 with antialias 'true'"),
        ({"pads_begin": [0, 0, 1, 0]}, "pads_begin, pads_end: padding before resampling"),
        ({"element": np.int32}, "'resize' (Interpolate-11): mode 'linear_onnx' of i32"),
    ],
)
def test_resampling_that_is_not_exact_is_named(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(CompilerError) as raised:
        read_ir(resampling(tmp_path, **changes))
    assert says in str(raised.value)
    assert "'resize'" in str(raised.value)


def test_all_unsupported_features_are_listed_together(xml: Path) -> None:
    error = refused(
        xml,
        ('type="Sqrt"', 'type="Lgamma"'),
        ('mode="half_to_even"', 'mode="up"'),
        ('element_type="u4"', 'element_type="f4e2m1"'),
    )
    kinds = sorted(kind for kind, _ in error.ops)
    assert kinds == ["Const-1 of f4e2m1", "Lgamma-1", "Round-5 with mode 'up'"]
    assert all(name in str(error) for _, name in error.ops)
    assert str(xml) in str(error)


def test_an_integer_quotient_must_be_rounded_down(xml: Path) -> None:
    text = xml.read_text()
    assert 'm_pythondiv="true"' in text
    xml.write_text(text.replace('m_pythondiv="true"', 'm_pythondiv="false"'))
    assert read_ir(xml).outputs, "the attribute has no effect on floats"
    divide = re.search('type="Divide".*?</layer>', xml.read_text(), re.S)
    assert divide is not None
    xml.write_text(xml.read_text().replace(divide[0], divide[0].replace("FP32", "I32")))
    with pytest.raises(UnsupportedOps, match="Divide-1 of integers with m_pythondiv 'false'"):
        read_ir(xml)


def test_an_axis_must_be_a_constant(xml: Path) -> None:
    text = xml.read_text()
    gather = text.index('name="embed" type="Gather"')
    number = text[text.rindex('<layer id="', 0, gather) :].split('"')[1]
    edge = next(line for line in text.splitlines() if f'to-layer="{number}" to-port="2"' in line)
    other = f'<edge from-layer="0" from-port="0" to-layer="{number}" to-port="2" />'
    error = refused(xml, (edge.strip(), other))
    assert error.ops == (("Gather-8 whose input 2 is not a constant", "embed"),)


def test_attention_sinks_are_named_with_a_remedy(xml: Path) -> None:
    """gpt-oss: ScaledDotProductAttention with a scale and a sink for each head."""
    attention = xml.read_text().index('type="ScaledDotProductAttention"')
    inputs = xml.read_text()[attention:].partition("</input>")[0]
    edge = '<edge from-layer="93" from-port="3" to-layer="94" to-port="3" />'
    scale, sink = (edge.replace('to-port="3"', f'to-port="{port}"') for port in (8, 9))
    more = f'{inputs}<port id="8" /><port id="9" />'
    error = refused(xml, (inputs, more), (edge, edge + scale + sink))
    kind = "ScaledDotProductAttention-13 with attention sinks (input 6, as gpt-oss has)"
    assert error.ops == ((kind, "attention"),)
    assert str(error).endswith("; run the model with OpenVINO on the CPU (npu-chat --device CPU)")


def test_a_message_names_five_ops_of_a_kind_and_the_error_lists_all() -> None:
    error = UnsupportedOps("model.xml", [("Sin-1", f"sin_{i}") for i in range(30)])
    assert "Sin-1 (30: 'sin_0', 'sin_1', 'sin_2', 'sin_3', 'sin_4' and 25 more)" in str(error)
    assert len(error.ops) == 30


ROWS, WHOLE = "tensor<2x4xf32>", "tensor<2x4xi64>"
SCALAR = "#ov.inline<i64 [0]> : tensor<i64>"

CANNOT = {
    "CumSum-3 along axis 0 of 2 dimensions": f"%c = ov.Constant {SCALAR}\n"
    '%y = ov.CumSum(%x, %c) {ov.name = "op", exclusive = false, reverse = false} : '
    f"({ROWS}, tensor<i64>) -> {ROWS}",
    "BitwiseAnd-13 of i64": f'%y = ov.BitwiseAnd(%i, %i) {{ov.name = "op"}} : '
    f"({WHOLE}, {WHOLE}) -> {WHOLE}",
    "Convert-1 of i4": '%y = ov.Convert(%x) {ov.name = "op", destination_type = "i4"} : '
    f"({ROWS}) -> tensor<2x4xi4>",
    "BitwiseLeftShift-15 without a SHAVE form": f"%y = ov.BitwiseLeftShift(%i, %i) "
    f'{{ov.name = "op"}} : ({WHOLE}, {WHOLE}) -> {WHOLE}',
    "TopK-11 along axis 0 of 2 dimensions": "%c = ov.Constant #ov.inline<i64 [1]> : "
    "tensor<i64>\n"
    '%y, %z = ov.TopK(%x, %c) {ov.name = "op", axis = 0 : i64, mode = "max", sort = "value", '
    f'stable = false, index_element_type = "i64"}} : ({ROWS}, tensor<i64>) -> '
    "(tensor<1x4xf32>, tensor<1x4xi64>)",
    "ErfInv-17 without a SHAVE form": f'%y = ov.ErfInv(%x) {{ov.name = "op"}} : ({ROWS}) -> {ROWS}',
    "ReduceL2-4 along axis 0 of 2 dimensions": "%c = ov.Constant #ov.inline<i64 [0]> : "
    "tensor<1xi64>\n"
    f'%y = ov.ReduceL2(%x, %c) {{ov.name = "op", keep_dims = true}} : ({ROWS}, tensor<1xi64>) '
    "-> tensor<1x4xf32>",
    "MVN-6 along axes 0, 1 of 2 dimensions": "%c = ov.Constant #ov.inline<i64 [0, 1]> : "
    "tensor<2xi64>\n"
    '%y = ov.MVN(%x, %c) {ov.name = "op", normalize_variance = true, eps = 1.0 : f64, '
    f'eps_mode = "inside_sqrt"}} : ({ROWS}, tensor<2xi64>) -> {ROWS}',
    "Interpolate-11 of u4 that is too large to be computed in advance": "%c = ov.Constant "
    "#ov.inline<i64 [1]> : tensor<1xi64>\n"
    "%a = ov.Constant #ov.inline<u4 [1, 2, 3, 4]> : tensor<2x2xui4>\n"
    '%y = ov.Interpolate(%a, %c, %c) {ov.name = "op", mode = "nearest", '
    'shape_calculation_mode = "sizes", coordinate_transformation_mode = "half_pixel", '
    'nearest_mode = "floor", antialias = "false", pads_begin = array<i64>, '
    "pads_end = array<i64>} : (tensor<2x2xui4>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x1xui4>",
    "MatMul-1 of i64 and i64": '%y = ov.MatMul(%i, %i) {ov.name = "op", transpose_a = false, '
    f"transpose_b = true}} : ({WHOLE}, {WHOLE}) -> tensor<2x2xi64>",
    "Gather-8 along axis 1 of 2 dimensions": "%c = ov.Constant #ov.inline<i64 [1]> : "
    "tensor<i64>\n%a = ov.Constant #ov.inline<i64 [1, 0]> : tensor<2xi64>\n"
    f'%y = ov.Gather(%x, %a, %c) {{ov.name = "op", batch_dims = 0 : i64}} : '
    f"({ROWS}, tensor<2xi64>, tensor<i64>) -> tensor<2x2xf32>",
    "Gather-8 of u4": f"%c = ov.Constant {SCALAR}\n"
    "%a = ov.Constant #ov.inline<u4 [1, 2, 3, 4]> : tensor<2x2xui4>\n"
    f'%y = ov.Gather(%a, %i, %c) {{ov.name = "op", batch_dims = 0 : i64}} : '
    f"(tensor<2x2xui4>, {WHOLE}, tensor<i64>) -> tensor<2x4x2xui4>",
    "Slice-8 with a negative step": "%a = ov.Constant #ov.inline<i64 [-1]> : tensor<1xi64>\n"
    "%b = ov.Constant #ov.inline<i64 [-9]> : tensor<1xi64>\n"
    f'%y = ov.Slice(%x, %a, %b, %a, %a) {{ov.name = "op"}} : '
    f"({ROWS}, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> {ROWS}",
    "Range-4 that is too large to be computed in advance": f"%a = ov.Constant {SCALAR}\n"
    "%b = ov.Constant #ov.inline<i64 [9000000]> : tensor<i64>\n"
    "%c = ov.Constant #ov.inline<i64 [1]> : tensor<i64>\n"
    '%y = ov.Range(%a, %b, %c) {ov.name = "op", output_type = "i64"} : '
    "(tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<9000000xi64>",
}


def model_of(*lines: str) -> Model:
    """Return a model of some ops; each has a result ``%y``."""
    body, results, types = [], [], []
    for number, line in enumerate(lines):
        body.append(line.replace("%y", f"%y{number}").replace("%c", f"%c{number}"))
        body[-1] = body[-1].replace("%a", f"%a{number}").replace("%b", f"%b{number}")
        body[-1] = body[-1].replace("%z", f"%z{number}")
        results.append(f"%y{number}")
        kinds = line.rpartition("-> ")[2].strip("()")
        types.append(kinds.split(", ")[0])
    text = "\n".join(body)
    ports = ", ".join(types)
    return Model.parse(
        f'func.func @main(%x: {ROWS} {{ov.names = "x"}}, %i: {WHOLE} {{ov.names = "i"}}) '
        f"-> ({ports}) {{\n"
        f"{text}\nfunc.return {', '.join(results)} : {ports}\n}}"
    )


@pytest.mark.parametrize("kind", CANNOT)
def test_an_op_that_the_device_cannot_run_is_named(kind: str) -> None:
    with pytest.raises(UnsupportedOps) as raised:
        compile_model(model_of(CANNOT[kind]), Options())
    assert raised.value.ops == ((kind, "op"),)


def test_all_ops_that_the_device_cannot_run_are_named_before_any_is_lowered() -> None:
    model = model_of(*CANNOT.values())
    seen: list[str] = []
    with pytest.raises(UnsupportedOps) as raised:
        compile_model(model, Options(), observer=lambda name, _: seen.append(name))
    assert sorted(kind for kind, _ in raised.value.ops) == sorted(CANNOT)
    assert seen[-1] == "lift-state"


def codebook_model(folder: Path) -> Model:
    """Build an LM head with codebook weights, as in NNCF's CB4, shared with the embedding."""
    stored = folder / "model.bin"
    stored.write_bytes(bytes(16) + bytes(256 * 64 // 2))
    values = FileView(str(stored), 0, 16, "f8e4m3")
    numbers = FileView(str(stored), 16, 256 * 64 // 2, "u4")
    ports = (("x", tensor("f32", (2, 64))), ("ids", tensor("i64", (3,))))
    model, (x, ids) = Model.build(ports)
    g = GraphBuilder(model)
    table = g.convert(g.add(Constant.of_file(values, "f8e4m3", (16,))).output, "f16")
    indices = g.convert(g.add(Constant.of_file(numbers, "u4", (256, 64))).output, "i32", "numbers")
    weights = g.convert(g.gather(table, indices, 0, "weights_codebook"), "f32")
    scaled = g.times(weights, 0.5)
    rows = g.gather(scaled, ids, 0, "embedding")
    model.set_outputs([("logits", g.matmul(x, scaled, transpose_b=True)), ("rows", rows)])
    return model


def test_codebooks_are_named_alone_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOps) as raised:
        compile_model(codebook_model(tmp_path), Options())
    kind = (
        "Gather-8 of weights from a codebook (u4 indices of 16 values, as --weight-format cb4 "
        "writes them)"
    )
    assert raised.value.ops == ((kind, "weights_codebook"),)
    assert str(raised.value).endswith("; export the model with --weight-format int4 or int8")


@pytest.mark.parametrize("dims", ["0x4", "4x0"])
def test_an_op_without_elements_is_named(dims: str) -> None:
    kind = f"tensor<{dims}xf32>"
    text = (
        _UNARY.format(name="Exp").replace("KIND", kind).replace("(%x) :", '(%x) {ov.name = "e"} :')
    )
    with pytest.raises(UnsupportedOps) as raised:
        compile_model(Model.parse(text), Options())
    assert raised.value.ops == (("Exp-1 of an empty tensor", "e"),)


def test_ports_of_too_many_dimensions_are_all_named() -> None:
    kind = "tensor<1x1x1x1x1x1x1x4xf32>"
    text = _UNARY.format(name="Exp").replace("KIND", kind)
    with pytest.raises(UnsupportedOps) as raised:
        compile_model(Model.parse(text), Options())
    assert raised.value.ops == (
        ("Parameter-1 of 8 dimensions", "x"),
        ("Result-1 of 8 dimensions", "y"),
    )


def test_the_check_refuses_no_op_that_has_a_lowering() -> None:
    """Every supported unary op passes the check and compiles."""
    for name in RULES:
        text = _UNARY.format(name=_SPELLED.get(name, name))
        if input_counts(name) != (1, 1) or RULES[name].properties or name in _ELSEWHERE:
            continue
        kind = "tensor<2x4xi1>" if "Not" in name else ROWS
        model = Model.parse(text.replace("KIND", kind))
        (op, *_) = model.body.ops
        assert refusal(op) is None, name
        assert compile_model(model, Options())


_ELSEWHERE = ("Atan", "ErfInv")
"""Ops without an instruction of the device: exporters apply ErfInv to constants only, so it is
folded or refused; Atan, for phases, runs on other devices."""

_SPELLED = {"SoftMax": "Softmax", "SoftPlus": "Softplus", "ReLU": "Relu"}

_UNARY = """func.func @main(%x: KIND {{ov.names = "x"}}) -> (KIND {{ov.names = "y"}}) {{
  %y = ov.{name}(%x) : (KIND) -> KIND
  func.return %y : KIND
}}"""
