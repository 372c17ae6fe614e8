"""A model cut at its repeated block: its parts, and models that cannot be cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compiler_layer.builder import GraphBuilder
from compiler_layer.compile import compile_parts
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.errors import NotPeriodic
from compiler_layer.files import FileView
from compiler_layer.model import Model
from compiler_layer.partition.repeated.cut import cut_at_block
from compiler_layer.partition.repeated.fold import folded
from compiler_layer.pipeline import Options, graph_passes, run_passes
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.weights import WeightRef

OPTIONS = Options(precision="f32")
ROWS, WIDTH, LAYERS = 2, 8, 5


def file_of(folder: Path) -> np.ndarray:
    """Write the weights of all layers to a file, and return them."""
    draw = np.random.default_rng(5)
    values = (draw.standard_normal((LAYERS, 2, WIDTH, WIDTH)) / 4).astype(np.float32)
    (folder / "weights").write_bytes(values.tobytes())
    return values


def stacked(folder: Path, keep: bool = False) -> Model:
    """Build y = … sin(x · a + bias) · b · scale + x …, with a scale from an input of the model.

    Args:
        folder: the folder of the weights.
        keep: True to output a value from inside of a layer.
    """
    kind = tensor("f32", (ROWS, WIDTH))
    model, (x, scale) = Model.build([("x", kind), ("position_ids", tensor("f32", (1, WIDTH)))])
    g = GraphBuilder(model)
    factor = g.op(elementwise.Exp, scale)
    value = g.op(elementwise.Sin, x)
    inner = []
    size = WIDTH * WIDTH * 4
    for layer in range(LAYERS):
        a, b = (
            g.add(
                Constant.of_file(
                    FileView(str(folder / "weights"), (2 * layer + n) * size, size, "f32"),
                    "f32",
                    (WIDTH, WIDTH),
                )
            ).output
            for n in range(2)
        )
        bias = g.constant(np.full((1, WIDTH), layer, np.float32))
        h = g.op(elementwise.Sin, g.op(elementwise.Add, g.matmul(value, a, False), bias))
        inner.append(h)
        h = g.op(elementwise.Multiply, g.matmul(h, b, False), factor)
        value = g.op(elementwise.Add, h, value)
    outputs = [("y", g.op(elementwise.Exp, value))]
    model.set_outputs([*outputs, *([("inner", inner[1])] if keep else [])])
    return model


def expected(values: np.ndarray, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    x = np.sin(x)
    for layer, (a, b) in enumerate(values):
        x = (np.sin(x @ a + layer) @ b) * np.exp(scale) + x
    return np.exp(x)


def lowered(model: Model) -> Model:
    run_passes(model, graph_passes(OPTIONS), OPTIONS)
    return model


def small(folder: Path) -> Model:
    found = folded(stacked(folder), both_first=True)
    assert found is not None
    return found


def with_weights_of(block: Model, layer: int) -> Model:
    """Return the block with the weights of a repetition."""
    made = block.clone()
    for op in list(made.body.ops):
        if isinstance(op, Constant) and op.is_repeated:
            other = op.of_repetition(layer)
            made.body.insert_op_before(other, op)
            op.output.replace_all_uses_with(other.output)
            op.detach()
    return made


def handed_to(piece: Model, known: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs of a part from the outputs of others."""
    return {port.name: known[port.name.replace("_in_", "_out_")] for port in piece.inputs}


def test_the_parts_in_sequence_compute_the_models_results(tmp_path) -> None:
    values = file_of(tmp_path)
    pieces = cut_at_block(lowered(small(tmp_path)))
    assert pieces.count == LAYERS
    x, scale = (
        np.random.default_rng(n).random((rows, WIDTH), np.float32)
        for n, rows in ((1, ROWS), (2, 1))
    )
    known = Interpreter(pieces.prologue).run({"x": x, "position_ids": scale}) | {"x": x}
    for layer in range(LAYERS):
        block = with_weights_of(pieces.block, layer)
        handed = {port.name: known.get(port.name.replace("_in_", "_out_")) for port in block.inputs}
        known |= Interpreter(block).run(handed)
    last = {port.name: known[port.name.replace("_in_", "_out_")] for port in pieces.epilogue.inputs}
    found = Interpreter(pieces.epilogue).run(last)["y"]
    np.testing.assert_allclose(found, expected(values, x, scale), rtol=1e-5)


def test_values_that_no_layer_changes_are_computed_once(tmp_path) -> None:
    file_of(tmp_path)
    pieces = cut_at_block(lowered(small(tmp_path)))
    names = [port.name for port in pieces.block.inputs]
    assert sorted(names) == ["hidden_in_0", "shared_0"]
    assert [port.name for port in pieces.block.outputs] == ["hidden_out_0"]
    exps = [sum(isinstance(op, elementwise.Exp) for op in piece.body.ops) for piece in _all(pieces)]
    assert exps == [1, 0, 1]


def _all(pieces):
    return pieces.prologue, pieces.block, pieces.epilogue


def test_weights_of_each_layer_are_named_and_literals_included(tmp_path) -> None:
    file_of(tmp_path)
    compiled = compile_parts(small(tmp_path), OPTIONS)
    size = WIDTH * WIDTH * 4
    names = {
        tuple(WeightRef.parse(name).offset for name in every) for every in compiled.weights.values()
    }
    assert names == {tuple((2 * layer + n) * size for layer in range(LAYERS)) for n in range(2)}
    (biases,) = compiled.literals.values()
    first = [np.frombuffer(each, np.float32)[0] for each in biases]
    assert first == [0, 1, 2, 3, 4]


def test_the_block_contains_no_weights_of_a_single_layer(tmp_path) -> None:
    file_of(tmp_path)
    compiled = compile_parts(small(tmp_path), OPTIONS)
    for layer in range(1, LAYERS):
        assert np.float32(layer).tobytes() * WIDTH not in compiled.block


def test_a_model_that_was_not_folded_cannot_be_cut(tmp_path) -> None:
    file_of(tmp_path)
    with pytest.raises(NotPeriodic, match="at least four times"):
        compile_parts(stacked(tmp_path), OPTIONS)


def test_a_model_whose_layers_have_outputs_is_not_folded(tmp_path) -> None:
    file_of(tmp_path)
    assert folded(stacked(tmp_path, keep=True), both_first=True) is None


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_parts_are_compiled_in_any_precision(tmp_path, precision) -> None:
    file_of(tmp_path)
    compiled = compile_parts(small(tmp_path), replace(OPTIONS, precision=precision))
    assert compiled.count == LAYERS
    stored = {WeightRef.parse(every[0]).element for every in compiled.weights.values()}
    assert stored == {precision}
