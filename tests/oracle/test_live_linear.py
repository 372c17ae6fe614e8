"""LFM-2 compared to OpenVINO's CPU plugin and to the real NPUW, live.

OpenVINO reads whole prompts. The exported graph forgets its state when several tokens follow
others, and so does the real NPUW, chunk by chunk; it pads whole prompts, which results in NaN. If
one of these tests fails with a newer ``openvino``, the defect is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDENS
from tests.oracle.real_npuw import EXACT, EXACTLY, ON_CPU

from npuw_layer import Core

pytestmark = pytest.mark.oracle

LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
CHUNKED = LENGTHS | {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16}
WHOLE = LENGTHS | {"NPUW_LLM_PREFILL_HINT": "STATIC"}

Reader = Callable[[Sequence[int], Sequence[int]], np.ndarray]
"""Runs tokens, split at given positions; returns the last logits."""


@pytest.fixture(scope="module")
def paths(restored: Callable[[Path, str], Path]) -> Callable[[str], Path]:
    return lambda precision: restored(GOLDENS / "linear", f"lfm2_{precision}")


def reader(compiled: Any) -> Reader:
    request = compiled.create_infer_request()

    def read(ids: Sequence[int], cuts: Sequence[int] = ()) -> np.ndarray:
        request.reset_state()
        for begin, end in zip([0, *cuts], [*cuts, len(ids)], strict=True):
            inputs = {
                "input_ids": np.array([ids[begin:end]], np.int64),
                "attention_mask": np.ones((1, end), np.int64),
                "beam_idx": np.zeros(1, np.int32),
            }
            request.infer(inputs)
        return np.array(request.get_tensor("logits").data[0, -1])

    return read


@pytest.fixture(scope="module")
def theirs(paths: Any) -> Reader:
    return reader(ov.Core().compile_model(paths("fp16"), "CPU", EXACT))


@pytest.fixture(scope="module")
def ours(paths: Any) -> Reader:
    options = CHUNKED | {"INFERENCE_PRECISION_HINT": "f32", "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}
    return reader(Core().compile_model(paths("fp16"), "NPU", options))


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@settings(max_examples=20, deadline=None)
@given(ids=st.lists(st.integers(3, 999), min_size=2, max_size=100), data=st.data())
def test_tokens_split_anywhere_equal_the_whole_prompt(
    ours: Reader, theirs: Reader, ids: list[int], data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, len(ids)))
    steps = data.draw(st.lists(st.integers(1, 8), max_size=4))
    cuts = [n for n in np.cumsum([first, *steps]).tolist() if n < len(ids)]
    if cuts and len(ids) - cuts[-1] > 8:
        cuts.append(len(ids) - 1)
    if len(cuts) > 1 and cuts[-1] - cuts[-2] > 8:
        cuts = cuts[:1] if len(ids) - cuts[0] <= 8 else []
    assert distance(ours(ids, cuts), theirs(ids, ())) <= 1e-5


def test_openvino_forgets_its_state_when_several_tokens_follow(theirs: Reader) -> None:
    ids = [*range(100, 150)]
    assert distance(theirs(ids, [30]), theirs(ids, ())) > 1e-2
    assert distance(theirs(ids, [49]), theirs(ids, ())) <= 1e-5


@pytest.mark.parametrize("most", [1, 8])
def test_generated_tokens_have_openvinos_filters_in_8_bits(paths: Any, most: int) -> None:
    """The exporter compresses only the filters for prompts."""
    read = reader(ov.Core().compile_model(paths("int8"), "CPU", EXACT))
    options = {"INFERENCE_PRECISION_HINT": "f32", "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": most}
    ours = reader(Core().compile_model(paths("int8"), "NPU", CHUNKED | options))
    ids = [*range(100, 150)]
    assert distance(read(ids, [47, 48, 49]), read(ids, ())) > 1e-2
    for cuts in ([], [49], [47, 48, 49]):
        assert distance(ours(ids, cuts), read(ids, cuts)) <= 1e-5


def test_npuw_forgets_its_state_between_chunks(paths: Any, ours: Reader, theirs: Reader) -> None:
    ids = [*range(100, 150)]
    read = reader(ov.Core().compile_model(paths("fp16"), "NPU", ON_CPU | EXACTLY | CHUNKED))
    expected = theirs(ids, ())
    assert distance(read(ids, ()), expected) > 1e-2
    assert distance(ours(ids, ()), expected) <= 1e-5


def test_npuw_returns_nan_for_whole_prompts(paths: Any, theirs: Reader) -> None:
    ids = [*range(100, 150)]
    read = reader(ov.Core().compile_model(paths("fp16"), "NPU", ON_CPU | EXACTLY | WHOLE))
    assert np.isnan(read(ids, ())).all()
    mine = Core().compile_model(paths("fp16"), "NPU", WHOLE | {"INFERENCE_PRECISION_HINT": "f32"})
    assert distance(reader(mine)(ids, ()), theirs(ids, ())) <= 1e-5
