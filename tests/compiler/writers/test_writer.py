"""IR writer: a written IR equals the one read, and OpenVINO computes the same results of it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.covering import each_architecture_once
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise, reduce
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.constant_value import FileAttr, Inline, InlineAttr
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, bool_attr
from compiler_layer.dialects.ov.types import ELEMENTS, tensor
from compiler_layer.elements import FOUR_BIT, NUMPY
from compiler_layer.errors import BadModel, CompilerUsageError, UnsupportedOps
from compiler_layer.files import FileView
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.frontends.openvino_ir.layer_rule import OneOf
from compiler_layer.frontends.openvino_ir.rules import RULES
from compiler_layer.model import Model
from compiler_layer.passes.fuse_rms import FuseRMS
from compiler_layer.pipeline import Options, run_passes
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir
from compiler_layer.writers.openvino_ir.write import weight_bytes

CORE = ov.Core()
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}

GOLDENS = Path(__file__).resolve().parents[2] / "goldens" / "exported"
EXPORTED = sorted(path.name.removesuffix(".xml.xz") for path in GOLDENS.glob("*.xml.xz"))
SHALLOW = [name for name in EXPORTED if "_deep" not in name]

PEER_MODELS = os.environ.get("PEER_MODELS", "")
"""Optional folder with ``ir/NAME-PRECISION/openvino_model.xml`` of the exporter."""


def located_by_content(model: Model) -> Model:
    """Replace each constant's file by a digest of its bytes."""
    for op in model.body.ops:
        if isinstance(op, Constant) and isinstance(op.value, FileAttr):
            digest = hashlib.sha256(op.stored()).digest()
            op.properties["value"] = InlineAttr(Inline(op.value.data.element, digest))
    return model


def check_round_trip(source: Path, folder: Path) -> None:
    written = folder / "written.xml"
    write_ir(read_ir(source), written)
    expected, found = located_by_content(read_ir(source)), located_by_content(read_ir(written))
    assert found.module.is_structurally_equivalent(expected.module)
    assert [p.name for p in found.outputs] == [p.name for p in expected.outputs]


@pytest.mark.matrix
@pytest.mark.parametrize("source", ["demo_ir", "llama_8m_ir"])
def test_an_exported_ir_is_written_as_it_was_read(
    request: pytest.FixtureRequest, source: str, tmp_path: Path
) -> None:
    check_round_trip(request.getfixturevalue(source), tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("name", each_architecture_once(SHALLOW))
def test_each_architecture_and_precision_is_written_as_it_was_read(
    load_module: Callable[[Path], Any], name: str, tmp_path: Path
) -> None:
    restore = load_module(GOLDENS / "restore.py").restore
    check_round_trip(restore(GOLDENS, name, tmp_path), tmp_path)


@pytest.mark.oracle
@pytest.mark.skipif(not PEER_MODELS, reason="PEER_MODELS names no folder")
@pytest.mark.parametrize(
    "source", sorted(Path(PEER_MODELS).glob("ir/*/openvino_model.xml")), ids=lambda p: p.parent.name
)
def test_every_exported_ir_is_written_as_it_was_read(source: Path, tmp_path: Path) -> None:
    check_round_trip(source, tmp_path)


def ask_openvino(xml: Path, turns: list[Mapping[str, np.ndarray]]) -> list[np.ndarray]:
    request = CORE.compile_model(xml, "CPU", EXACT).create_infer_request()
    return [np.array(request.infer(turn)["logits"]) for turn in turns]


def test_openvino_computes_the_same_results_of_a_written_folder(
    llama_8m: Path, turns: list[Mapping[str, np.ndarray]], tmp_path: Path
) -> None:
    model = read_folder(llama_8m)
    write_ir(model, tmp_path / "openvino_model.xml")
    interpreter = Interpreter(model)
    for turn, found in zip(
        turns, ask_openvino(tmp_path / "openvino_model.xml", turns), strict=True
    ):
        expected = interpreter.run(turn)["logits"]
        assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.long
def test_openvino_computes_the_same_results_of_a_rewritten_ir(
    llama_8m_ir: Path, turns: list[Mapping[str, np.ndarray]], tmp_path: Path
) -> None:
    write_ir(read_ir(llama_8m_ir), tmp_path / "openvino_model.xml")
    theirs = ask_openvino(llama_8m_ir, turns)
    ours = ask_openvino(tmp_path / "openvino_model.xml", turns)
    for expected, found in zip(theirs, ours, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_openvino_finds_the_ports_by_name(llama_8m: Path, tmp_path: Path) -> None:
    model = read_folder(llama_8m)
    write_ir(model, tmp_path / "m.xml")
    loaded = CORE.read_model(tmp_path / "m.xml")
    assert [port.any_name for port in loaded.inputs] == [port.name for port in model.inputs]
    assert [port.any_name for port in loaded.outputs] == ["logits"]
    ids = [variable.info.variable_id for variable in loaded.get_variables()]
    assert sorted(ids) == sorted(variable.name for variable in model.variables())


def build(*outputs: str, make: Callable[[GraphBuilder, object], list[object]]) -> Model:
    """Build a model of one input ``x``, f32 [?, 4]."""
    model, (x,) = Model.build([("x", tensor("f32", (-1, 4)))])
    model.set_outputs(list(zip(outputs, make(GraphBuilder(model), x), strict=True)))
    return model


def test_generated_names_avoid_existing_ones(tmp_path: Path) -> None:
    def make(g: GraphBuilder, x: object) -> list[object]:
        unnamed = g.op(elementwise.Exp, x)
        named = g.op(elementwise.Exp, unnamed, name="Exp_1")
        twice = g.op(elementwise.Sqrt, named, name="Exp_1")
        return [g.op(elementwise.Sqrt, twice, name="x")]

    write_ir(build("y", make=make), tmp_path / "m.xml")
    names = re.findall(r'<layer id="\d+" name="([^"]*)"', (tmp_path / "m.xml").read_text())
    assert names == ["x", "Exp_2", "Exp_1", "Exp_1_1", "x_1", "Result_5"]
    assert len(CORE.read_model(tmp_path / "m.xml").get_ops()) == 6


def test_one_value_may_be_two_outputs_and_an_input_an_output(tmp_path: Path) -> None:
    def make(g: GraphBuilder, x: object) -> list[object]:
        y = g.op(elementwise.Exp, x)
        return [y, y, x]

    write_ir(build("a", "b", "c", make=make), tmp_path / "m.xml")
    compiled = CORE.compile_model(tmp_path / "m.xml", "CPU", EXACT)
    x = np.ones((1, 4), np.float32)
    found = compiled([x])
    np.testing.assert_allclose(found["a"], np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(found["a"], found["b"])
    np.testing.assert_array_equal(found["c"], x)


def test_markup_in_names_is_escaped(tmp_path: Path) -> None:
    name = 'a<b & "c">'
    model = build("y", make=lambda g, x: [g.op(elementwise.Exp, x, name=name)])
    write_ir(model, tmp_path / "m.xml")
    (op,) = [op for op in read_ir(tmp_path / "m.xml").body.ops if isinstance(op, elementwise.Exp)]
    assert op.friendly_name == name


def test_a_name_that_xml_cannot_represent_is_refused(tmp_path: Path) -> None:
    model = build("y", make=lambda g, x: [g.op(elementwise.Exp, x, name="a\0b")])
    with pytest.raises(CompilerUsageError, match="printable"):
        write_ir(model, tmp_path / "m.xml")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_attributes_are_written_as_they_are_read(data: st.DataObject) -> None:
    """Text, property, text: every parser of an attribute in the table preserves the text."""
    from compiler_layer.frontends.openvino_ir.ops import _text

    readers = sorted(
        {read for rule in RULES.values() for read, _ in rule.properties.values()},
        key=lambda read: getattr(read, "__name__", str(getattr(read, "words", ""))),
    )
    texts = {
        "flag": st.sampled_from(["true", "false"]),
        "integer": st.integers(-(1 << 63), (1 << 63) - 1).map(str),
        "integers": st.lists(st.integers(-9, 9), min_size=1).map(lambda v: ", ".join(map(str, v))),
        "number": st.floats(allow_nan=False).map(repr),
    }
    read = data.draw(st.sampled_from(readers))
    words = isinstance(read, OneOf)
    text = data.draw(st.sampled_from(read.words) if words else texts[read.__name__])
    assert _text(read(text)) == text


@given(
    element=st.sampled_from(sorted(ELEMENTS)),
    shape=st.lists(st.integers(1, 5), max_size=3).map(tuple),
    seed=st.integers(0, 99),
)
@settings(max_examples=18, deadline=None)
def test_constants_of_every_type_and_shape_keep_their_values(
    tmp_path_factory: pytest.TempPathFactory, element: str, shape: tuple[int, ...], seed: int
) -> None:
    low, high = (-8, 8) if element == "i4" else (0, 16) if element == "u4" else (0, 2)
    values = np.random.RandomState(seed).randint(low, high, shape).astype(NUMPY[element])
    model, _ = Model.build([])
    constant = GraphBuilder(model).add(Constant.inline(values, element), "c")
    model.set_outputs([("y", constant.output)])
    xml = tmp_path_factory.mktemp("constant") / "m.xml"
    write_ir(model, xml)
    (again,) = [op for op in read_ir(xml).body.ops if isinstance(op, Constant)]
    assert again.output.type == constant.output.type
    np.testing.assert_array_equal(again.load(), values)
    (loaded,) = [op for op in CORE.read_model(xml).get_ops() if op.get_type_name() == "Constant"]
    assert loaded.get_output_element_type(0) == getattr(ov.Type, element)
    if element not in {"bf16", *FOUR_BIT}:
        np.testing.assert_array_equal(loaded.data, values)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write a file of 4 MiB of f32."""
    path = tmp_path / "weights"
    path.write_bytes((np.arange(1 << 20) % 60_000).astype(np.float32).tobytes())
    return path


def with_views(*views: tuple[FileView, str, tuple[int, ...]]) -> Model:
    model, _ = Model.build([])
    g = GraphBuilder(model)
    constants = [g.add(Constant.of_file(view, element, shape)) for view, element, shape in views]
    model.set_outputs([(f"y{i}", constant.output) for i, constant in enumerate(constants)])
    return model


def offsets(xml: Path) -> list[int]:
    return [int(text) for text in re.findall(r'offset="(\d+)"', xml.read_text())]


def test_equal_views_are_written_once_and_aligned(source: Path, tmp_path: Path) -> None:
    first, second = FileView(str(source), 0, 400, "f32"), FileView(str(source), 400, 400, "f32")
    shape = (100,)
    model = with_views(
        (first, "f32", shape), (second, "f32", shape), (first, "f32", shape), (first, "f16", shape)
    )
    write_ir(model, tmp_path / "m.xml")
    assert offsets(tmp_path / "m.xml") == [0, 448, 0, 896]
    assert (tmp_path / "m.bin").stat().st_size == 896 + 200


def test_a_view_of_another_type_is_converted_during_writing(source: Path, tmp_path: Path) -> None:
    model = with_views((FileView(str(source), 0, 1 << 22, "f32"), "bf16", (1 << 20,)))
    write_ir(model, tmp_path / "m.xml")
    (again,) = [op for op in read_ir(tmp_path / "m.xml").body.ops if isinstance(op, Constant)]
    (before,) = [op for op in model.body.ops if isinstance(op, Constant)]
    np.testing.assert_array_equal(again.load(), before.load())


def test_progress_adds_up_to_the_bytes_of_all_constants(source: Path, tmp_path: Path) -> None:
    view = FileView(str(source), 0, 1 << 22, "f32")
    model = with_views(*[(view, element, (1 << 20,)) for element in ("f32", "f32", "f16")])
    told: list[int] = []
    write_ir(model, tmp_path / "m.xml", told.append)
    assert sum(told) == weight_bytes(model) == (8 << 20) + (2 << 20)


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """IR in a separate folder, and the bytes of its files."""
    folder = tmp_path / "out"
    folder.mkdir()
    model = build("y", make=lambda g, x: [g.op(elementwise.Exp, x, name="old")])
    write_ir(model, folder / "m.xml")
    return folder / "m.xml", {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_failed_write_leaves_the_old_files(
    source: Path, written: tuple[Path, dict[str, bytes]]
) -> None:
    xml, before = written
    model = with_views((FileView(str(source), 0, 1 << 22, "f32"), "f32", (1 << 20,)))
    os.truncate(source, 1000)
    with pytest.raises(BadModel, match="weights: ends before the end of a constant"):
        write_ir(model, xml)
    assert {path.name: path.read_bytes() for path in xml.parent.iterdir()} == before


def test_a_write_replaces_both_files(written: tuple[Path, dict[str, bytes]], source: Path) -> None:
    xml, before = written
    write_ir(with_views((FileView(str(source), 0, 400, "f32"), "f32", (100,))), xml)
    assert {path.name for path in xml.parent.iterdir()} == set(before)
    assert xml.with_suffix(".bin").stat().st_size == 400
    assert "old" not in xml.read_text()


def test_a_model_is_not_written_over_its_own_weights(demo_ir: Path, tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes(demo_ir.read_bytes())
    (tmp_path / "m.bin").write_bytes(demo_ir.with_suffix(".bin").read_bytes())
    model = read_ir(tmp_path / "m.xml")
    with pytest.raises(CompilerUsageError, match="the model is read from it"):
        write_ir(model, tmp_path / "m.xml")
    check_round_trip(tmp_path / "m.xml", tmp_path)


@pytest.mark.parametrize("place", ["missing/m.xml", "weights/m.xml"])
def test_a_path_that_cannot_be_written_is_named(source: Path, tmp_path: Path, place: str) -> None:
    model = with_views((FileView(str(source), 0, 4, "f32"), "f32", (1,)))
    with pytest.raises(CompilerUsageError, match=r"m\.xml: (No such file|Not a directory)"):
        write_ir(model, tmp_path / place)


def test_ops_that_are_not_openvinos_are_listed(llama_8m: Path, tmp_path: Path) -> None:
    model = read_folder(llama_8m)
    run_passes(model, [FuseRMS()], Options())
    with pytest.raises(UnsupportedOps, match=r"RMS \(17"):
        write_ir(model, tmp_path / "m.xml")
    assert list(tmp_path.iterdir()) == []


def test_flags_and_optional_operands_are_preserved(tmp_path: Path) -> None:
    def make(g: GraphBuilder, x: object) -> list[object]:
        mean = g.op(reduce.ReduceMean, x, g.ints(-1), keep_dims=bool_attr(True))
        beta = g.constant(np.array(0.5, np.float32))
        return [g.op(activation.Swish, mean, [beta]), g.op(activation.Swish, mean, [])]

    model = build("a", "b", make=make)
    write_ir(model, tmp_path / "m.xml")
    again = read_ir(tmp_path / "m.xml")
    for op in (*again.body.ops, *model.body.ops):
        op.attributes[NAME_ATTRIBUTE] = StringAttr("")
    assert again.module.is_structurally_equivalent(model.module)
