"""Texts of all lengths give OpenVINO's results, in chunks or whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.reference.interpreter import Interpreter
from npuw_layer import Core
from npuw_layer.errors import ModelError, OptionError, PromptTooLong, TensorError
from npuw_layer.storage.read_model import read_model

GOLDENS = Path(__file__).resolve().parents[3] / "goldens"
LENGTHS = (1, 7, 64, 65, 120)
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def inputs(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Return a caller's inputs for texts without padding."""
    found = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    if name == "bert":
        n = ids.shape[1]
        found["token_type_ids"] = np.tile((np.arange(n) > n // 2).astype(np.int64), (len(ids), 1))
    return found


def words(draw: np.random.Generator, *shape: int) -> np.ndarray:
    return draw.integers(10, 512, shape)


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["qwen3", "llama", "qwen2_windows", "gemma3", "bert", "xlmr"])
def test_outputs_equal_openvinos(
    compiled: Callable[..., Any], said: Callable[[str], Any], name: str
) -> None:
    request, expected = compiled(name).create_infer_request(), said(name)
    for n in LENGTHS:
        (found,) = request.infer(inputs(name, expected[f"text_{n}"])).values()
        found = found[:, [0, n // 2, n - 1]] if found.ndim > 2 else found
        np.testing.assert_allclose(found, expected[f"said_{n}"], **CLOSE)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("qwen3", "prefill_32 + prefill_32_after_32 + prefill_32_after_96"),
        ("llama", "prefill_32 + prefill_32_after_32 + prefill_32_after_96"),
        ("bert", "prefill_128"),
        ("qwen2_windows", "prefill_128"),  # the second layer has a sliding window
        ("gemma3", "prefill_128"),  # a decoder, but tokens attend to later ones
    ],
)
def test_causal_models_are_read_in_chunks_and_others_whole(
    compiled: Callable[..., Any], name: str, how: str
) -> None:
    request = compiled(name).create_infer_request()
    request.infer(inputs(name, words(np.random.default_rng(1), 1, 70)))
    assert request.execution_report()["texts"] == how
    hint = compiled(name).get_property("NPUW_LLM_PREFILL_HINT")
    assert hint == ("STATIC" if how == "prefill_128" else "DYNAMIC")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gemma3", "the attention is not causal"),
        ("qwen2_windows", "the attention is not causal"),
        ("qwen3_score", "the model has no KV cache"),
    ],
)
def test_models_read_whole_reject_kv_blocks(
    compiled: Callable[..., Any], name: str, why: str
) -> None:
    blocks = "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE"
    with pytest.raises(OptionError, match=f"{blocks}: .* read whole \\(.*{why}"):
        compiled(name, **{blocks: "YES"})


@pytest.fixture(scope="module")
def whole(text_model: Callable[[str], Path]) -> Callable[[str, np.ndarray], np.ndarray]:
    """Return a function that computes the exported graph for a complete text in numpy."""
    graphs: dict[str, Interpreter] = {}

    def run(name: str, ids: np.ndarray) -> np.ndarray:
        if name not in graphs:
            graphs[name] = Interpreter(read_model(text_model(name)))
        return graphs[name].run(inputs(name, ids))["last_hidden_state"]

    return run


@settings(max_examples=8, deadline=None)
@given(chunks=st.integers(0, 3), beyond=st.integers(-1, 1), seed=st.integers(0, 99))
def test_chunks_equal_the_complete_text_around_all_chunk_borders(
    compiled: Callable[..., Any],
    whole: Callable[[str, np.ndarray], np.ndarray],
    chunks: int,
    beyond: int,
    seed: int,
) -> None:
    n = min(max(32 * chunks + 32 + beyond, 1), 128)
    ids = words(np.random.default_rng(seed), 1, n)
    found = compiled("qwen3").create_infer_request().infer(inputs("qwen3", ids))
    np.testing.assert_allclose(found["last_hidden_state"], whole("qwen3", ids), **CLOSE)


@settings(max_examples=10, deadline=None)
@given(n=st.integers(1, 256), seed=st.integers(0, 99))
def test_the_smallest_model_that_holds_a_text_runs(
    compiled: Callable[..., Any], n: int, seed: int
) -> None:
    ids = words(np.random.default_rng(seed), 1, n)
    model = compiled("llama", NPUW_LLM_MAX_PROMPT_LEN=256, NPUW_LLM_PREFILL_CHUNK_SIZE=0)
    request = model.create_infer_request()
    given = {**inputs("llama", ids), "position_ids": np.arange(n)[None]}
    found = request.infer(given)["last_hidden_state"]
    assert request.execution_report()["texts"] == ("prefill_64" if n <= 64 else "prefill_256")
    expected = compiled("llama").create_infer_request()
    if n <= 128:
        same = expected.infer(inputs("llama", ids))["last_hidden_state"]
        np.testing.assert_allclose(found, same, **CLOSE)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "far"),
    [
        ({"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"}, 1e-4),
        ({"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"}, 1e-4),
        (
            {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA", "NPUW_LLM_OPTIMIZE_V_TENSORS": "NO"},
            1e-4,
        ),
        ({"KV_CACHE_PRECISION": "i8"}, 0.1),
    ],
)
def test_texts_are_read_under_all_prefill_options(
    compiled: Callable[..., Any],
    said: Callable[[str], Any],
    options: dict[str, str],
    far: float,
) -> None:
    request, expected = compiled("llama", **options).create_infer_request(), said("llama")
    found = request.infer(inputs("llama", expected["text_120"]))["last_hidden_state"]
    error = np.abs(found[:, [0, 60, 119]] - expected["said_120"]).max()
    assert error <= far
    assert (error > 1e-4) == (far > 1e-4), "rows of 8 bits are not exact"


def test_a_request_keeps_no_state_between_texts(compiled: Callable[..., Any]) -> None:
    used, fresh = (compiled("qwen3").create_infer_request() for _ in range(2))
    draw = np.random.default_rng(5)
    used.infer(inputs("qwen3", words(draw, 1, 128)))
    given = inputs("qwen3", words(draw, 1, 40))
    np.testing.assert_array_equal(
        *(each.infer(given)["last_hidden_state"] for each in (used, fresh))
    )


@pytest.mark.parametrize("name", ["qwen3", "bert"])
def test_the_error_for_a_too_long_text_names_the_option(
    compiled: Callable[..., Any], name: str
) -> None:
    request = compiled(name).create_infer_request()
    with pytest.raises(PromptTooLong, match="NPUW_LLM_MAX_PROMPT_LEN"):
        request.infer(inputs(name, words(np.random.default_rng(0), 1, 129)))
    assert request.infer(inputs(name, words(np.random.default_rng(0), 1, 128)))


def test_the_error_for_few_positions_states_them(text_model: Callable[[str], Path]) -> None:
    options = {"NPUW_TEXT_EMBED": "YES", "NPUW_LLM_MAX_PROMPT_LEN": 512}
    with pytest.raises(ModelError, match=r"130 positions.*_PROMPT_LEN = 512; .* at most 128"):
        Core().compile_model(text_model("bert"), "NPU", options)


def test_a_language_model_with_logits_embeds_no_texts(restored: Callable[..., Path]) -> None:
    model = restored(GOLDENS / "exported", "qwen3_fp16")
    with pytest.raises(
        ModelError, match=r"outputs \['logits'\].*; export it with .* --task feature"
    ):
        Core().compile_model(model, "NPU", {"NPUW_TEXT_EMBED": "YES"})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"NPUW_TEXT_RERANK": "YES"}, "a model embeds or ranks texts"),
        ({"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"}, "hidden states of all"),
        ({"NPUW_LLM_ON_FULL": "SLIDE"}, "conversations"),
        ({"NPUW_LLM": "NO"}, "NPUW_LLM = YES"),
    ],
)
def test_options_that_contradict_embedding_are_rejected(
    text_model: Callable[[str], Path], wrong: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        Core().compile_model(text_model("qwen3"), "NPU", {"NPUW_TEXT_EMBED": "YES", **wrong})


def test_inputs_that_do_not_fit_are_rejected(compiled: Callable[..., Any]) -> None:
    request = compiled("bert").create_infer_request()
    ids = words(np.random.default_rng(0), 2, 9)
    ones = np.ones_like(ids)
    for wrong, message in (
        ({"input_ids": ids}, "missing: attention_mask"),
        ({"input_ids": ids, "attention_mask": ones[:, :8]}, r"set \[2, 9\]"),
        ({"input_ids": ids, "attention_mask": ones.astype(np.float32)}, "float32"),
        ({"input_ids": ids, "attention_mask": ones * 0}, "all tokens of text 0 are masked out"),
        ({"input_ids": ids[:0], "attention_mask": ones}, "texts"),
        ({"ids": ids, "attention_mask": ones}, "no input 'ids'"),
    ):
        with pytest.raises(TensorError, match=message):
            request.infer(wrong)
