"""Quantization of complete models: weights found, their schemes, and equal results."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.constant_value import FileAttr
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.errors import BadModel, CompilerUsageError
from compiler_layer.files import FileView
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.model import Model
from compiler_layer.passes.fuse_dequantize import FuseDequantize
from compiler_layer.pipeline import Options, run_passes
from compiler_layer.quantize import (
    Format,
    LayerReport,
    TensorFile,
    find_weights,
    format_table,
    measure_weights,
    quantize_weights,
    store_floats,
)
from compiler_layer.quantize.linear import quantize
from compiler_layer.quantize.report import Errors, format_kinds
from compiler_layer.quantize.schemes import Scheme, scheme_of
from compiler_layer.quantize.tensors import store
from compiler_layer.quantize.weights import Weight
from compiler_layer.reference.interpreter import Interpreter
from driver_layer.abi.dtypes import f32_to_bf16

INT8, INT4 = Format("int8"), Format("int4", 64)
GOLDENS = Path(__file__).resolve().parents[2] / "goldens"


def ignore(done: int) -> None:
    """Ignore progress."""


def small(path: Path, weights: np.ndarray, transposed: bool = False) -> Model:
    """Build y = swish(swish(x · W) · H) with W in a file, and x = E[ids] of a table in the file."""
    random = np.random.RandomState(1)
    inner, outer = weights.shape[::-1] if transposed else weights.shape
    arrays = {
        "table": random.standard_normal((10, inner)).astype(np.float32),
        "first": weights.astype(np.float32),
        "head": random.standard_normal((outer, 6)).astype(np.float32),
    }
    model, (ids,) = Model.build([("ids", tensor("i64", (-1, -1)))])
    g, values = GraphBuilder(model), dict[str, SSAValue]()
    with path.open("wb") as file:
        for name, array in arrays.items():
            view = FileView(str(path), file.tell(), array.nbytes, "f32")
            file.write(array.tobytes())
            values[name] = g.weight(view, "f32", array.shape, name)
    x = g.gather(values["table"], ids, 0)
    hidden = g.matmul(x, values["first"], transpose_b=transposed, name="product")
    head = g.matmul(g.op(activation.Swish, hidden, []), values["head"], transpose_b=False)
    model.set_outputs([("y", g.op(activation.Tanh, head, name="capped"))])
    return model


def normal(*shape: int) -> np.ndarray:
    return np.random.RandomState(0).standard_normal(shape).astype(np.float32)


def quantized(model: Model, wanted: Format, folder: Path) -> list[LayerReport]:
    reports = quantize_weights(model, wanted, TensorFile(folder / "quantized"), ignore)
    model.verify()
    return reports


@pytest.mark.parametrize("transposed", [False, True])
def test_weights_are_found_by_their_use(tmp_path: Path, transposed: bool) -> None:
    shape = (24, 16) if transposed else (16, 24)
    found = find_weights(small(tmp_path / "w", normal(*shape), transposed))
    summed = 1 if transposed else 0
    assert [(w.name, w.role, w.summed) for w in found] == [
        ("table", "embedding", 1),
        ("first", "linear", summed),
        ("head", "head", 0),
    ]


def test_a_tied_table_is_one_weight_and_stays_one(llama_8m: Path, tmp_path: Path) -> None:
    model = read_folder(llama_8m)
    names = [weight.name for weight in find_weights(model)]
    assert len(names) == len(set(names)) == 57
    assert names[0] == "model.embed_tokens.weight"
    quantized(model, INT4, tmp_path)
    tables = [op for op in constants(model) if shape_of(op.output) == (8192, 256)]
    assert [element_of(op.output) for op in tables] == ["u8"]


def constants(model: Model) -> list[Constant]:
    return [op for op in model.body.ops if isinstance(op, Constant)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("wanted", "stored"),
    [
        (Format("int8"), "u8"),
        (Format("int8", symmetric=True), "i8"),
        (Format("int4", 8), "u4"),
        (Format("int4", 8, symmetric=True), "i4"),
        (Format("int4", -1), "u4"),
        (Format("int4", 16, symmetric=True), "i4"),
    ],
)
def test_the_reported_error_is_that_of_the_weight_in_the_graph(
    tmp_path: Path, wanted: Format, stored: str, transposed: bool
) -> None:
    weights = normal(24, 16) if transposed else normal(16, 24)
    model = small(tmp_path / "w", weights, transposed)
    (found,) = [weight for weight in find_weights(model) if weight.name == "first"]
    (use,) = found.values[0].uses
    reports = {report.name: report for report in quantized(model, wanted, tmp_path)}
    floats = value_of(model, use.operation.operands[use.index])
    error = np.linalg.norm(floats - weights) / np.linalg.norm(weights)
    assert error == pytest.approx(reports["first"].relative_error, rel=1e-4)
    assert str(reports["first"].scheme).startswith(stored)
    assert stored in {element_of(op.output) for op in constants(model)}


def value_of(model: Model, value: SSAValue) -> np.ndarray:
    copy = model.clone()
    ours = list(model.body.ops).index(value.owner)
    copy.set_outputs([("w", list(copy.body.ops)[ours].results[0])])
    run_passes(copy, [FuseDequantize()], Options())
    ids = np.zeros((1, 1), np.int64)
    return Interpreter(copy).run({"ids": ids})["w"]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("element", ["u4", "i4", "u8"])
def test_a_large_weight_is_quantized_in_blocks_with_little_memory(
    tmp_path: Path, element: str, transposed: bool
) -> None:
    """Both dimensions are odd, so that 4-bit elements end in the middle of a byte."""
    shape = (2501, 1001)
    weights = normal(*shape)
    path = tmp_path / "w"
    path.write_bytes(weights.tobytes())
    constant = Constant.of_file(FileView(str(path), 0, weights.nbytes, "f32"), "f32", shape)
    summed = 1 if transposed else 0
    weight = Weight(constant, summed, "linear", [constant.output])
    scheme = Scheme(element, None if transposed else 41)
    tracemalloc.start()
    stored, _ = store(weight, scheme, TensorFile(tmp_path / "q"), ignore)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < weights.nbytes / 2
    cut = (2501, 1001, 1) if transposed else (61, 41, 1001)
    whole = quantize(weights.reshape(cut), element)
    found = [
        Constant.of_file(view, view.element, dims).load()
        for view, dims in (
            (stored.values, stored.blocking.shape),
            (stored.scale, stored.blocking.scale_shape),
        )
    ]
    np.testing.assert_array_equal(found[0].reshape(cut), whole.values)
    np.testing.assert_array_equal(found[1].reshape(whole.scale.shape), whole.scale)


def test_measuring_returns_the_same_reports_and_keeps_the_model(tmp_path: Path) -> None:
    model = small(tmp_path / "w", normal(16, 24))
    before = model.text()
    told: list[int] = []
    reports = measure_weights(model, INT8, told.append)
    assert model.text() == before
    assert sum(told) == 10 * 16 + 16 * 24 + 24 * 6
    assert reports == quantized(model, INT8, tmp_path)


def test_a_width_that_is_not_a_multiple_of_the_group_keeps_8_bits_and_is_reported(
    tmp_path: Path,
) -> None:
    reports = quantized(small(tmp_path / "w", normal(20, 24)), Format("int4", 16), tmp_path)
    schemes = {report.name: report.scheme for report in reports}
    assert (schemes["first"].element, schemes["first"].group_size) == ("u8", None)
    assert schemes["first"].note == "8 bits: 20 is not a multiple of 16"


def test_the_default_group_is_the_largest_that_divides_the_width_as_nncf_adjusts_it() -> None:
    expected = json.loads((GOLDENS / "group_sizes.json").read_text())
    found = {width: scheme_of(weight(24, int(width)), Format("int4")) for width in expected}
    assert {
        width: [scheme.element, scheme.group_size or int(width)] for width, scheme in found.items()
    } == expected
    assert found["100"].note == "8 bits: 100 is not a multiple of 32"


def weight(*shape: int) -> Weight:
    constant = Constant.of_file(FileView("unread", 0, 0, "f32"), "f32", shape)
    return Weight(constant, 1, "linear", [constant.output])


def test_the_storage_of_each_kind_of_weight_is_one_row() -> None:
    names = [f"model.layers.{layer}.mlp.{kind}.weight" for layer in (0, 1) for kind in "ab"]
    schemes = [Scheme("u4", 64), Scheme("u8", note="8 bits: 7 is odd")] * 2
    reports = [
        LayerReport.of(name, (2, 7), scheme, Errors())
        for name, scheme in zip([*names, "Transpose_17"], [*schemes, Scheme("i4")], strict=True)
    ]
    assert format_kinds(reports).splitlines() == [
        "weights      stored as   count",
        "a            u4 g64          2",
        "b            u8 channel      2  8 bits: 7 is odd",
        "Transpose_*  i4 channel      1",
    ]


def test_embedding_and_head_keep_8_bits(tmp_path: Path) -> None:
    reports = quantized(small(tmp_path / "w", normal(16, 24)), Format("int4", 16), tmp_path)
    assert [(r.scheme.element, r.scheme.note) for r in reports] == [
        ("u8", "the embedding keeps 8 bits"),
        ("u4", ""),
        ("u8", "the head keeps 8 bits"),
    ]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_not_finite_is_named(tmp_path: Path, value: float) -> None:
    weights = normal(16, 24)
    weights[7, 9] = value
    with pytest.raises(BadModel, match=r"first: a weight is infinite or NaN"):
        measure_weights(small(tmp_path / "w", weights), INT8, ignore)


def test_a_quantized_model_is_refused(tmp_path: Path) -> None:
    model = small(tmp_path / "w", normal(16, 24))
    quantized(model, INT8, tmp_path)
    with pytest.raises(CompilerUsageError, match="the model may be quantized already"):
        measure_weights(model, INT8, ignore)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Format("int3"), "choose one of int8, int4"),
        (lambda: Format("int4", 0), "group size of 0"),
        (lambda: Format("int4", -2), "group size of -2"),
    ],
)
def test_an_unknown_format_is_refused(make: Callable[[], Format], says: str) -> None:
    with pytest.raises(CompilerUsageError, match=says):
        make()


def test_the_table_names_each_weight_and_the_worst(tmp_path: Path) -> None:
    reports = quantized(small(tmp_path / "w", normal(20, 24)), Format("int4", 16), tmp_path)
    lines = format_table(reports).splitlines()
    assert len(lines) == 5
    assert lines[0].split()[:3] == ["weight", "shape", "stored"]
    assert "first   20x24" in lines[2]
    assert lines[2].endswith("8 bits: 20 is not a multiple of 16")
    worst = max(reports, key=lambda report: report.relative_error)
    assert f"824 parameters; worst: {worst.name}, {worst.snr_db:.1f} dB" in lines[4]


def test_snr_agrees_with_the_relative_error(tmp_path: Path) -> None:
    reports = measure_weights(small(tmp_path / "w", normal(160, 240)), INT8, ignore)
    for report in reports:
        assert 10 ** (-report.snr_db / 20) == pytest.approx(report.relative_error)
        assert report.max_error <= 1 / 255
        assert 0 < report.mean_error < 0.02


@pytest.fixture
def typed(tmp_path: Path) -> Callable[[str, np.ndarray], Model]:
    """Builder of y = x · W, with W in its stored type in a file."""

    def build(element: str, stored: np.ndarray) -> Model:
        path = tmp_path / "typed"
        path.write_bytes(stored.tobytes())
        model, (x,) = Model.build([("x", tensor("f32", (-1, stored.shape[0])))])
        g = GraphBuilder(model)
        weight = g.weight(
            FileView(str(path), 0, stored.nbytes, element), element, stored.shape, "w"
        )
        y = g.matmul(x, weight, transpose_b=False)
        model.set_outputs([("y", y), ("w", g.op(elementwise.Negative, weight))])
        return model

    return build


@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("target", ["f32", "f16", "bf16"])
def test_a_change_of_the_float_type_hardly_changes_values(
    typed: Callable[[str, np.ndarray], Model], source: str, target: str
) -> None:
    w = normal(20, 30)
    stored = f32_to_bf16(w) if source == "bf16" else w.astype({"f32": "f4", "f16": "f2"}[source])
    model = typed(source, stored)
    x = {"x": normal(3, 20)}
    before = Interpreter(model).run(x)
    others = {"f32", "f16", "bf16"} - {target}
    assert store_floats(model, dict.fromkeys(others, target)) == []
    model.verify()
    (weight,) = [op for op in constants(model) if isinstance(op.value, FileAttr)]
    assert element_of(weight.output) == target
    assert weight.friendly_name == ("w" if target == "f32" != source else "w_compressed")
    after = Interpreter(model).run(x)
    tolerance = {"f32": 0, "f16": 1e-3, "bf16": 1e-2}[target] if source != target else 0
    for name, values in before.items():
        assert np.abs(after[name] - values).max() <= tolerance * np.abs(values).max()


def test_weights_beyond_f16_keep_their_type(typed: Callable[[str, np.ndarray], Model]) -> None:
    w = normal(20, 30)
    w[3, 4] = 1e5
    model = typed("f32", w)
    assert store_floats(model, {"f32": "f16"}) == ["w"]
    assert [element_of(op.output) for op in constants(model)] == ["f32"]


def test_a_float_that_is_nan_is_named(typed: Callable[[str, np.ndarray], Model]) -> None:
    w = normal(20, 30)
    w[3, 4] = np.nan
    with pytest.raises(BadModel, match="typed: w: a weight is infinite or NaN"):
        store_floats(typed("f32", w), {"f32": "f16"})
