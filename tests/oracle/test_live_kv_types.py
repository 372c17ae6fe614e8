"""K and V in another float type than activations, compared to the real OpenVINO and its NPUW."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from tests.npuw.conftest import ask, write_tiny
from tests.oracle.real_npuw import EXACT, EXACTLY, ON_CPU

from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core

pytestmark = pytest.mark.oracle

LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
CHUNKS = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
BITS = {"f16": 11, "bf16": 8}
"""Bits of the mantissa, the implicit one included."""
IDS = np.random.default_rng(7).integers(0, 97, 110)
Steps = Sequence[tuple[int, int]]
STEPS: Steps = ((0, 100), *((past, past + 1) for past in range(100, 110)))


@pytest.fixture(scope="module")
def xml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """IR of a tiny Llama."""
    folder = tmp_path_factory.mktemp("tiny")
    model = read_folder(write_tiny(folder))
    write_ir(model, folder / "openvino_model.xml")
    return folder / "openvino_model.xml"


def ours(xml: Path, steps: Steps = STEPS, **options: Any) -> np.ndarray:
    """Return the logits of a prompt and of some steps."""
    own = {"INFERENCE_PRECISION_HINT": "f32", "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    config = LENGTHS | own | options
    request = Core().compile_model(xml, "NPU", config).create_infer_request()
    return np.stack([ask(request, IDS[None, begin:end], begin) for begin, end in steps])


def theirs(compiled: ov.CompiledModel, steps: Steps = STEPS) -> np.ndarray:
    """Return OpenVINO's logits of the same steps; its model may have beam_idx."""
    request, found = compiled.create_infer_request(), list[np.ndarray]()
    known = {name for port in compiled.inputs for name in port.names}
    for begin, end in steps:
        inputs = {
            "input_ids": IDS[None, begin:end],
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(begin, end)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        request.infer({name: value for name, value in inputs.items() if name in known})
        found.append(np.array(request.get_tensor("logits").data[0, -1]))
    return np.stack(found)


def rounding(xml: Path, bits: int) -> ov.Model:
    """Return the model with all rows rounded before they are stored or attended to.

    Veltkamp's splitting keeps ``bits`` bits of the mantissa: the CPU plugin would remove a pair
    of Converts.
    """
    model = ov.Core().read_model(xml)
    factor = op.constant(np.float32(2 ** (24 - bits) + 1))
    for sink in model.get_sinks():
        join = sink.input_value(0).get_node()
        assert join.get_type_name() == "Concat"
        new = join.input(1)
        large = op.multiply(new.get_source_output(), factor)
        low = op.subtract(large, new.get_source_output())
        new.replace_source_output(op.subtract(large, low).output(0))
    model.validate_nodes_and_infer_types()
    return model


def error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def hints(kind: str) -> dict[str, str]:
    both = {f"NPUW_LLM_{stage}_ATTENTION_HINT": kind for stage in ("PREFILL", "GENERATE")}
    return {**CHUNKS, **both, "NPUW_DEVICES": "NPU,CPU"}


WAYS: dict[str, dict[str, str]] = {
    "whole prompts": {},
    "chunks": CHUNKS,
    "PYRAMID": hints("PYRAMID"),
    "HFA": hints("HFA"),
    "DYNAMIC": hints("DYNAMIC"),
    "blocks": CHUNKS | {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
    "transposed values": {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
    "interpreter": {"NPUW_DEVICES": "CPU"},
}


@pytest.fixture(scope="module", params=BITS)
def rounded(xml: Path, request: pytest.FixtureRequest) -> tuple[str, np.ndarray]:
    """A type, and OpenVINO's logits of the model with rows rounded to the type."""
    compiled = ov.Core().compile_model(rounding(xml, BITS[request.param]), "CPU", EXACT)
    return request.param, theirs(compiled)


@pytest.mark.parametrize("way", WAYS)
def test_logits_equal_openvinos_with_rounded_rows(
    xml: Path, rounded: tuple[str, np.ndarray], way: str
) -> None:
    kind, expected = rounded
    assert error(ours(xml, KV_CACHE_PRECISION=kind, **WAYS[way]), expected) <= 1e-5


def test_rounding_changes_the_logits(xml: Path, rounded: tuple[str, np.ndarray]) -> None:
    assert error(ours(xml), rounded[1]) > 1e-4


def test_on_openvinos_cpu_new_rows_are_rounded_when_they_are_stored(
    xml: Path, rounded: tuple[str, np.ndarray]
) -> None:
    """An inference attends to its own unrounded rows: the plugin removes their rounding for f16."""
    kind, expected = rounded
    assert error(ours(xml, KV_CACHE_PRECISION=kind, NPUW_DEVICES="OPENVINO_CPU"), expected) < 2e-3


def test_the_real_npuw_stores_f16_by_default(xml: Path) -> None:
    """Tokens run one by one, as NPUW attends to a chunk's rows before it rounds them."""
    config = {**ON_CPU, **EXACTLY, **LENGTHS}
    del config["KV_CACHE_PRECISION"]
    steps = [(token, token + 1) for token in range(60)]
    real = theirs(ov.Core().compile_model(xml, "NPU", config), steps)
    exact, half = (ours(xml, steps, KV_CACHE_PRECISION=kind) for kind in ("f32", "f16"))
    # NPUW attends to each new row unrounded, which hardly matters after the first rows.
    far, near = (np.abs(found - real)[20:].mean() for found in (exact, half))
    assert near < far / 2
