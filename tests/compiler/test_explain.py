"""Costs read from a blob: its tasks by operation, the bytes they move, their durations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler_layer.compile import compile_model
from compiler_layer.errors import BadModel
from compiler_layer.explain import Explanation, explain, grouped
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.model import Model
from compiler_layer.pipeline import Options
from compiler_layer.rewriting.shapes import parse_shapes
from driver_layer.abi.layer_map import SECTION_NAME, decode_layer_map
from driver_layer.loader.read import read_blob

TOKENS, PAST = 8, 56


@pytest.fixture(scope="module")
def config(demo: Path) -> dict[str, int]:
    return json.loads((demo / "config.json").read_text())


@pytest.fixture(scope="module")
def blob(demo: Path, config: dict[str, int]) -> bytes:
    model = read_folder(demo)
    model.set_input_shapes(_shapes(model, config))
    return compile_model(model, Options(weightless=True))


@pytest.fixture(scope="module")
def explanation(blob: bytes) -> Explanation:
    return explain(blob)


def _shapes(model: Model, config: dict[str, int]) -> dict[str, tuple[int, ...]]:
    text = f"input_ids=1x{TOKENS},attention_mask=1x{PAST + TOKENS},position_ids=1x{TOKENS}"
    shapes = parse_shapes(text + ",beam_idx=1")
    cache = (1, config["num_key_value_heads"], PAST, config["head_dim"])
    caches = dict.fromkeys((variable.name for variable in model.variables()), cache)
    return shapes | caches


def test_every_multiplication_of_the_model_is_counted(
    explanation: Explanation, config: dict[str, int]
) -> None:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads, width = config["num_attention_heads"], config["head_dim"]
    for layer in explanation.layers:
        if layer.name.endswith(".sdpa"):
            assert layer.macs == 2 * heads * TOKENS * (PAST + TOKENS) * width
        if layer.name.endswith(".mlp.down_proj"):
            assert layer.macs == TOKENS * hidden * inner
        if layer.name == "lm_head":
            assert layer.macs == TOKENS * hidden * config["vocab_size"]
    names = [layer.name for layer in explanation.layers]
    layers = config["num_hidden_layers"]
    assert sum(name.endswith(".sdpa") for name in names) == layers
    assert sum(name.endswith(".mlp.down_proj") for name in names) == layers
    assert "lm_head" in names


def test_a_blob_names_the_kind_of_each_operation(blob: bytes) -> None:
    (section,) = (each for each in read_blob(blob).sections if each.name == SECTION_NAME)
    kinds = {layer.name: layer.kind for layer in decode_layer_map(section.data).layers}
    assert all(kinds.values())
    assert kinds["lm_head"] == "MatMul"
    assert {kinds[name] for name in kinds if name.endswith(".sdpa")} == {"Attention"}
    assert "Gather" in kinds.values()


def test_weights_are_read_once(explanation: Explanation, demo: Path) -> None:
    weights = (demo / "model.safetensors").stat().st_size
    moved = sum(layer.ddr_bytes for layer in explanation.layers)
    assert 0.5 * weights < moved < 2 * weights


def test_total_time_is_between_the_busiest_queue_and_the_sum(explanation: Explanation) -> None:
    assert max(explanation.busy.values()) <= 1
    busy = sum(layer.busy_ns for layer in explanation.layers)
    assert 0 < explanation.total_ns <= busy
    assert all(layer.span_ns <= explanation.total_ns for layer in explanation.layers)


def test_no_operation_holds_more_than_the_workspace(explanation: Explanation) -> None:
    assert 0 < max(layer.cmx_bytes for layer in explanation.layers) <= 1439 << 10


def test_equal_operations_of_all_layers_are_one_group(explanation: Explanation) -> None:
    groups = {group.name: group for group in grouped(explanation.layers)}
    down = groups["model.layers.*.mlp.down_proj"]
    ones = [one for one in explanation.layers if one.name.endswith(".mlp.down_proj")]
    assert down.count == len(ones) > 1
    assert down.macs == sum(one.macs for one in ones)


def test_data_that_is_not_a_blob_is_refused(blob: bytes) -> None:
    with pytest.raises(BadModel, match="other"):
        explain(b"no blob", "other")
    with pytest.raises(BadModel):
        explain(blob[: len(blob) // 2])
