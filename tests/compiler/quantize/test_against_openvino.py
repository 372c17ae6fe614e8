"""Quantized models: OpenVINO computes the same results of a written model as we do."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests.covering import beside_by_turns

from compiler_layer.dialects.ov import elementwise
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.passes.fuse_dequantize import FuseDequantize
from compiler_layer.pipeline import Options, run_passes
from compiler_layer.quantize import (
    Format,
    LayerReport,
    TensorFile,
    find_weights,
    quantize_weights,
    store_floats,
)
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
INT8 = Format("int8")
PEER_MODELS = os.environ.get("PEER_MODELS", "")
GOLDENS = Path(__file__).resolve().parents[2] / "goldens"

Turns = list[Mapping[str, np.ndarray]]


def ignore(done: int) -> None:
    """Ignore progress."""


def quantized(model: Model, wanted: Format, folder: Path) -> list[LayerReport]:
    reports = quantize_weights(model, wanted, TensorFile(folder / "quantized"), ignore)
    model.verify()
    return reports


@pytest.mark.matrix
@pytest.mark.parametrize(
    "wanted",
    [
        Format("int8"),
        Format("int8", symmetric=True),
        Format("int4", 64, symmetric=True),
        Format("int4", -1),
        Format("int4", 128),
    ],
    ids=lambda f: f"{f.name}{'_sym' if f.symmetric else ''}_{f.group_size}",
)
def test_openvino_computes_the_same_results_of_a_quantized_model(
    llama_8m: Path, tmp_path: Path, turns: Turns, wanted: Format
) -> None:
    model = read_folder(llama_8m)
    quantized(model, wanted, tmp_path)
    write_ir(model, tmp_path / "openvino_model.xml")
    compiled = ov.Core().compile_model(tmp_path / "openvino_model.xml", "CPU", EXACT)
    # OpenVINO computes the dequantizing ops in f32; with this pass so do we.
    run_passes(model, [FuseDequantize()], Options())
    request, interpreter = compiled.create_infer_request(), Interpreter(model)
    for turn in turns:
        found, expected = request.infer(turn)["logits"], interpreter.run(turn)["logits"]
        assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


FAMILIES = json.loads((GOLDENS / "families.json").read_text())


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("family", "wanted"), beside_by_turns(FAMILIES, [INT8, Format("int4", 16)])
)
def test_openvino_computes_the_same_results_of_quantized_families(
    load_module: Callable[[Path], Any], tmp_path: Path, family: str, wanted: Format
) -> None:
    module = load_module(GOLDENS / "families.py")
    model = read_folder(module.write_folder(tmp_path / "hf", FAMILIES[family]))
    reports = quantized(model, wanted, tmp_path)
    assert {"embedding", "linear", "head"} & {w.role for w in find_weights(model)} == set()
    assert min(report.snr_db for report in reports) > 15
    store_floats(model, {"bf16": "f32"})
    write_ir(model, tmp_path / "openvino_model.xml")
    compiled = ov.Core().compile_model(tmp_path / "openvino_model.xml", "CPU", EXACT)
    run_passes(model, [FuseDequantize()], Options())
    ids = module.prompt(FAMILIES[family]["config"], 7)
    inputs = {
        "input_ids": ids,
        "attention_mask": np.ones((1, 7), np.int64),
        "position_ids": np.arange(7)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    inputs = {port.name: inputs[port.name] for port in model.inputs}
    found, expected = compiled(inputs)["logits"], Interpreter(model).run(inputs)["logits"]
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.oracle
@pytest.mark.skipif(not PEER_MODELS, reason="PEER_MODELS names no folder")
@pytest.mark.parametrize(
    ("precision", "wanted"), [("int8", INT8), ("int4", Format("int4", 64, symmetric=True))]
)
def test_our_weights_have_no_larger_errors_than_the_exporters(
    tmp_path: Path, turns: Turns, precision: str, wanted: Format
) -> None:
    """Compare each quantized weight of llama-8m, ours and the exporter's, with the checkpoint."""
    folder = Path(PEER_MODELS)
    ours, theirs = read_folder(folder / "llama-8m"), folder / f"ir/llama-8m-{precision}"
    expected = {weight.name: weight.constant.load() for weight in find_weights(ours)}
    quantized(ours, wanted, tmp_path)
    mine, other = (
        decompressed(model, turns[0]) for model in (ours, read_ir(theirs / "openvino_model.xml"))
    )
    assert mine.keys() == other.keys() == expected.keys()
    for name, weight in expected.items():
        our_error, their_error = (np.linalg.norm(v[name] - weight) for v in (mine, other))
        assert our_error <= 1.01 * their_error, name


def decompressed(model: Model, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the values of quantized weights, by their names in the checkpoint."""
    copy = model.clone()
    found = {}
    for op in copy.body.ops:
        if isinstance(op, elementwise.Convert) and op.friendly_name.endswith("/convert"):
            found[re.sub(r"^self\.|/.*$", "", op.friendly_name)] = op.output
    copy.set_outputs(list(found.items()))
    return Interpreter(copy).run(inputs)
