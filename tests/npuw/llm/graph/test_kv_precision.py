"""Caches of 8 bits: about half the memory, nearly the same logits, other results unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.conftest import ask, caches_of

from npuw_layer import Core
from npuw_layer.errors import OptionError

LENGTHS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
}
SMALL = {**LENGTHS, "KV_CACHE_PRECISION": "i8"}


def request_of(model: Path, **options: Any) -> Any:
    return Core().compile_model(model, "NPU", {**SMALL, **options}).create_infer_request()


@pytest.fixture(scope="module")
def ids() -> np.ndarray:
    return np.random.RandomState(3).randint(3, 2000, (1, 120))


def test_logits_stay_close_to_those_of_exact_caches(
    llama_8m: Path, llama_8m_goldens: Mapping[str, np.ndarray]
) -> None:
    request = request_of(llama_8m, INFERENCE_PRECISION_HINT="f32")
    found = ask(request, llama_8m_goldens["prompt_100"])
    expected = llama_8m_goldens["hf_logits_100"]
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert 1e-5 < error < 0.05


def test_a_row_has_a_byte_per_channel_and_one_scale(demo: Path) -> None:
    def after_a_prompt(**options: Any) -> tuple[int, int]:
        request = request_of(demo, **options)
        ask(request, np.arange(3, 67)[None])
        states = caches_of(request)
        scales = sum(data.nbytes for name, data in states.items() if name.endswith(".scale"))
        return sum(data.nbytes for data in states.values()), scales

    whole, scales = after_a_prompt()
    plain, none = after_a_prompt(KV_CACHE_PRECISION="")
    # Heads of 32 channels: 32 bytes and a scale of f16, instead of 64 bytes.
    assert none == 0
    assert scales * 17 == whole
    assert plain * 34 == whole * 64


@pytest.mark.long
def test_chunks_affect_only_rounding(demo: Path, ids: np.ndarray) -> None:
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    whole = ask(request_of(demo, **exact), ids)
    chunked = ask(request_of(demo, NPUW_LLM_PREFILL_CHUNK_SIZE=32, **exact), ids)
    # Sums in another order may round a number near a half in the other direction.
    assert np.abs(whole - chunked).max() <= 1e-3 * np.abs(whole).max()


def test_a_rewind_is_exact(demo: Path, ids: np.ndarray) -> None:
    request = request_of(demo, INFERENCE_PRECISION_HINT="f32")
    first = ask(request, ids[:, :50])
    one = ask(request, ids[:, 50:51], 50)
    ask(request, ids[:, 90:91], 51)
    again = ask(request, ids[:, 50:51], 50)
    assert np.array_equal(one, again)
    request.reset_state()
    assert np.array_equal(ask(request, ids[:, :50]), first)


def test_the_device_computes_what_the_graph_means(demo: Path, ids: np.ndarray) -> None:
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    device = request_of(demo, **exact)
    graph = request_of(demo, NPUW_DEVICES="CPU", **exact)
    for begin, end in ((0, 60), (60, 61), (61, 62)):
        a, b = (ask(request, ids[:, begin:end], begin) for request in (device, graph))
        # A half rounded in the other direction differs by one step of 127.
        assert np.abs(a - b).max() <= 5e-3 * np.abs(b).max()


def test_the_error_for_another_type_names_it(demo: Path) -> None:
    with pytest.raises(OptionError, match="KV_CACHE_PRECISION"):
        request_of(demo, KV_CACHE_PRECISION="u4")


@pytest.mark.matrix
@pytest.mark.parametrize(("one", "same"), [("u8", "i8"), ("f16", "")])
def test_synonymous_types_are_equal(demo: Path, one: str, same: str) -> None:
    asked = {"INFERENCE_PRECISION_HINT": "f16"}
    found = [request_of(demo, **asked, KV_CACHE_PRECISION=name) for name in (one, same)]
    ids = np.arange(30)[None] % 90
    said = [ask(request, ids, 0) for request in found]
    assert np.array_equal(*said)
