"""Caches in floats of another type than activations; tests/oracle compares with OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.conftest import ask, caches_of
from tests.npuw.llm.graph.test_float8_caches import large_keys

from driver_layer.abi.dtypes import bf16_to_f32, f32_to_bf16
from npuw_layer import Core
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import OptionError, StateError
from npuw_layer.options import parse_options

LENGTHS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
}
IDS = np.random.default_rng(3).integers(3, 90, (1, 101))


def request_of(model: Path, activations: str, kv: str, **options: Any) -> Any:
    kinds = {"INFERENCE_PRECISION_HINT": activations, "KV_CACHE_PRECISION": kv}
    return Core().compile_model(model, "NPU", LENGTHS | kinds | options).create_infer_request()


def said(request: Any) -> np.ndarray:
    steps = ((0, 98), (98, 99), (99, 100), (100, 101))
    return np.stack([ask(request, IDS[:, begin:end], begin) for begin, end in steps])


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_rows_are_those_of_exact_caches_rounded(tiny: Path, kind: str) -> None:
    """The first layer's rows depend on no cached rows."""
    plain, half = request_of(tiny, "f32", ""), request_of(tiny, "f32", kind)
    said(plain)
    said(half)
    exact, rounded = caches_of(plain), caches_of(half)
    for name in (name for name in exact if ".0.key" in name or ".0.value" in name):
        raw = exact[name].astype(np.float16) if kind == "f16" else f32_to_bf16(exact[name])
        assert rounded[name].dtype == raw.dtype
        assert rounded[name].nbytes * 2 == exact[name].nbytes
        bits = (each.view(np.uint16).astype(int) for each in (rounded[name], raw))
        assert np.abs(np.subtract(*bits)).max() <= 1, "rounded in the other direction"
        assert np.mean(rounded[name] != raw) < 0.01


@pytest.mark.matrix
@pytest.mark.parametrize("activations", ["f16", "bf16"])
def test_wider_rows_change_no_number(tiny: Path, activations: str) -> None:
    own, wide = request_of(tiny, activations, ""), request_of(tiny, activations, "f32")
    assert np.array_equal(said(own), said(wide))
    narrow, same = caches_of(own), caches_of(wide)
    for name, rows in same.items():
        values = narrow[name] if activations == "f16" else bf16_to_f32(narrow[name])
        assert rows.dtype == np.float32
        assert np.array_equal(rows, values.astype(np.float32))


@pytest.mark.matrix
@pytest.mark.parametrize(("activations", "kv"), [("f16", "bf16"), ("bf16", "f16")])
def test_two_different_16_bit_types_can_be_combined(tiny: Path, activations: str, kv: str) -> None:
    device = request_of(tiny, activations, kv)
    graph = request_of(tiny, activations, kv, NPUW_DEVICES="CPU")
    found, expected = said(device), said(graph)
    assert np.abs(found - expected).max() <= 2e-2 * np.abs(expected).max()
    kinds = {rows.dtype for rows in caches_of(device).values()}
    assert kinds == {np.dtype(np.float16 if kv == "f16" else np.uint16)}


def test_chunks_affect_only_rounding(tiny: Path) -> None:
    whole = said(request_of(tiny, "f32", "f16"))
    chunked = said(request_of(tiny, "f32", "f16", NPUW_LLM_PREFILL_CHUNK_SIZE=32))
    assert np.abs(whole - chunked).max() <= 1e-4 * np.abs(whole).max()


def test_a_cached_prefix_has_the_stored_values(tiny: Path) -> None:
    options = {
        "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
        "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
        "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 16,
    }
    request = request_of(tiny, "f32", "f16", **options)
    first = said(request)
    request.reset_state()
    again = said(request)
    assert np.abs(first - again).max() <= 1e-4 * np.abs(first).max()


def test_states_are_read_and_set_in_the_stored_type(tiny: Path) -> None:
    one, other = request_of(tiny, "f32", "f16"), request_of(tiny, "f32", "f16")
    ask(one, IDS[:, :60])
    targets = {state.name: state for state in other.query_state()}
    for name, rows in caches_of(one).items():
        targets[name].state = Tensor(rows)
    assert np.array_equal(ask(one, IDS[:, 60:61], 60), ask(other, IDS[:, 60:61], 60))
    name, rows = next(iter(caches_of(other).items()))
    with pytest.raises(StateError, match="is float16"):
        targets[name].state = Tensor(rows.astype(np.float32))


def test_values_out_of_range_are_clamped(demo: Path, tmp_path: Path) -> None:
    """An infinity would spoil all later results of attention."""
    request = request_of(large_keys(demo, tmp_path, 60000), "f32", "f16")
    logits = ask(request, np.arange(10, 40)[None])
    assert np.isfinite(logits).all()
    keys = next(rows for name, rows in caches_of(request).items() if ".0.key" in name)
    assert np.abs(keys).max() == np.finfo(np.float16).max


def test_paged_models_store_the_type_of_activations() -> None:
    options = {"NPUW_PA": "YES", "INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f16"}
    with pytest.raises(OptionError, match="KV_CACHE_PRECISION = f16: contradicts NPUW_PA"):
        parse_options(options)
