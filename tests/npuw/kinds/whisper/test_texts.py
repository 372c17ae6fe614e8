"""Requests of a decoder: prompts over new audio, tokens, and the end of the cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX
from npuw_layer.errors import (
    CapacityError,
    InferenceCancelled,
    PromptTooLong,
    StateError,
    TensorError,
)

BEGIN, EOS, VOCABULARY = 257, 256, 300
IDS = np.random.RandomState(3).randint(0, 256, 500).tolist()


@pytest.fixture
def another(compiled) -> Any:
    """Return a function that makes further requests of the same model."""
    return compiled.create_infer_request


def told(text, audio, count: int) -> np.ndarray:
    """Return the logits of a prompt of three tokens and of the tokens after it."""
    return np.concatenate([text.begin(BEGIN, *IDS[:2], audio=audio), text.tell(*IDS[2:count])])


def test_k_and_v_of_audio_are_computed_by_prefill_and_read_by_the_others(compiled) -> None:
    models = {stage.name: model for stage, model in compiled._compiled.models.items()}
    assert list(models) == ["prefill_4", "generate_256", "generate_448"]
    names = [f"past_key_values.{layer}.encoder.{p}" for layer in (0, 1) for p in ("key", "value")]
    given = {info.name for info in models["prefill_4"].outputs}
    assert {ASSIGN_PREFIX + name for name in names} <= given
    assert "encoder_hidden_states" in {info.name for info in models["prefill_4"].inputs}
    for size in (256, 448):
        inputs = {info.name for info in models[f"generate_{size}"].inputs}
        assert {READ_PREFIX + name for name in names} <= inputs
        assert "encoder_hidden_states" not in inputs
        outputs = {info.name for info in models[f"generate_{size}"].outputs}
        assert not {ASSIGN_PREFIX + name for name in names} & outputs


def test_generate_receives_mask_and_positions(compiled) -> None:
    """The split adds mask and position; the model has neither (docs/reference/npuw.md#whisper)."""
    inputs = {
        stage.name: {info.name for info in model.inputs}
        for stage, model in compiled._compiled.models.items()
    }
    assert {"attention_mask", "position_ids"} <= inputs["generate_256"]
    assert not {"attention_mask", "cache_position"} & {port.any_name for port in compiled.inputs}


def test_generate_reads_the_prompts_rows_without_a_copy(text, hear) -> None:
    text.begin(BEGIN, *IDS[:3], audio=hear(1))
    text.tell(IDS[3])
    assert text.request.execution_report()["KV copied"] == "0 bytes"


def test_audio_is_read_only_with_a_prompt(text, another, hear) -> None:
    expected = told(text, hear(1), 8)
    other = type(text)(another())
    logits = [other.begin(BEGIN, *IDS[:2], audio=hear(1))]
    for token in IDS[2:8]:  # audio of later inferences is ignored
        inputs = {"input_ids": np.array([[token]]), "encoder_hidden_states": hear(2)}
        logits.append(other.request.infer(inputs)["logits"][0])
    np.testing.assert_array_equal(np.concatenate(logits), expected)


def test_several_tokens_start_a_new_text_over_new_audio(text, another, hear) -> None:
    first = told(text, hear(1), 8)
    second = told(text, hear(2), 8)
    assert np.abs(first - second).max() > 0.1
    np.testing.assert_array_equal(told(type(text)(another()), hear(2), 8), second)


def test_a_first_single_token_starts_a_text_as_for_language_detection(text, another, hear) -> None:
    expected = text.begin(BEGIN, IDS[0], audio=hear(1))
    for begin in (another(), text.request):
        begin.reset_state()
        one = type(text)(begin)
        np.testing.assert_allclose(one.begin(BEGIN, audio=hear(1)), expected[:1], atol=1e-5)
        np.testing.assert_allclose(one.tell(IDS[0]), expected[1:], atol=1e-5)


def test_two_concurrent_texts_do_not_mix(text, another, hear) -> None:
    alone = [told(type(text)(another()), hear(seed), 20) for seed in (1, 2)]
    other = type(text)(another())
    pairs = [(text, hear(1)), (other, hear(2))]
    logits = [[each.begin(BEGIN, *IDS[:2], audio=audio)] for each, audio in pairs]
    for token in IDS[2:20]:
        for (each, _), found in zip(pairs, logits, strict=True):
            found.append(each.tell(token))
    for found, expected in zip(logits, alone, strict=True):
        np.testing.assert_array_equal(np.concatenate(found), expected)


def test_the_last_position_selects_the_end_and_leaves_no_room(text, hear) -> None:
    text.begin(BEGIN, *IDS[:2], audio=hear(1))
    logits = text.tell(*IDS[2:447])
    assert np.isfinite(logits[:-1]).all()
    assert logits[-1].argmax() == EOS
    assert logits[-1, EOS] == np.inf
    with pytest.raises(CapacityError, match="1 more exceed its capacity of 448; the text"):
        text.tell(IDS[0])
    assert np.isfinite(told(text, hear(2), 8)).all(), "a new prompt has all positions again"


def test_a_larger_variant_takes_over_from_a_full_one(decoder, compiled, text, hear):
    options = {"NPUW_LLM_GENERATE_PYRAMID": "NO"}
    config = {name: compiled.get_property(name) for name in WHISPER}
    long = Core().compile_model(decoder, "NPU", config | options)
    expected = told(type(text)(long.create_infer_request()), hear(1), 270)
    np.testing.assert_allclose(told(text, hear(1), 270), expected, atol=1e-4)
    assert text.request.execution_report()["KV variant"] == "448 of 256/448"


WHISPER = (
    *("NPUW_WHISPER", "NPUW_WHISPER_EOS_TOKEN", "NPUW_WHISPER_ENCODER_LEN"),
    "INFERENCE_PRECISION_HINT",
)


def test_an_option_allows_longer_prompts(decoder, compiled, text, hear) -> None:
    with pytest.raises(PromptTooLong, match="5 tokens, at most 4 are possible; raise NPUW_LLM_MAX"):
        text.begin(BEGIN, *IDS[:4], audio=hear(1))
    config = {name: compiled.get_property(name) for name in WHISPER}
    wide = Core().compile_model(decoder, "NPU", config | {"NPUW_LLM_MAX_PROMPT_LEN": 10})
    logits = type(text)(wide.create_infer_request()).begin(BEGIN, *IDS[:9], audio=hear(1))
    np.testing.assert_allclose(logits, told(text, hear(1), 9), atol=1e-4)


def test_a_cancelled_prompt_is_read_again(text, another, hear, monkeypatch) -> None:
    expected = told(type(text)(another()), hear(2), 8)
    told(text, hear(1), 8)
    begun = text.request._talk.reset

    def cancel(tokens: int) -> None:
        begun(tokens)
        text.request.cancel()

    monkeypatch.setattr(text.request._talk, "reset", cancel)
    with pytest.raises(InferenceCancelled):
        text.begin(BEGIN, IDS[0], audio=hear(2))
    monkeypatch.undo()
    with pytest.raises(TensorError, match="inputs are missing: encoder_hidden_states"):
        text.tell(IDS[0])
    np.testing.assert_array_equal(told(text, hear(2), 8), expected)


def test_inferences_run_on_a_separate_thread(text, another, hear) -> None:
    expected = type(text)(another()).begin(BEGIN, IDS[0], audio=hear(1))
    text.request.set_tensor("encoder_hidden_states", hear(1))
    text.request.start_async({"input_ids": np.array([[BEGIN, IDS[0]]])})
    text.request.wait()
    np.testing.assert_array_equal(text.request.get_tensor("logits").data[0], expected)


def test_states_continue_in_another_request(text, another, hear) -> None:
    told(text, hear(1), 8)
    other = type(text)(another())
    for mine, theirs in zip(other.request.query_state(), text.request.query_state(), strict=True):
        assert mine.name == theirs.name
        if mine.name != "npuw_stored_tokens_state":  # it is read-only
            mine.state = theirs.state
    np.testing.assert_array_equal(other.tell(*IDS[8:12]), text.tell(*IDS[8:12]))
    (*_, last) = other.request.query_state()
    assert last.name == "past_key_values.1.encoder.value"
    with pytest.raises(StateError, match=r"is float32 \[1, 2, 40, 16\], not float32 \[1, 2, 3, 4"):
        last.state = np.zeros((1, 2, 3, 4), np.float32)
    last.reset()
    with pytest.raises(TensorError, match="encoder_hidden_states"):
        other.tell(IDS[0])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "inputs are missing: input_ids"),
        ({"input_ids": [[BEGIN]]}, r"missing: encoder_hidden_states f32 \[1, 40, 32\]"),
        ({"input_ids": [[]]}, "input_ids has no tokens"),
        ({"input_ids": [[1], [2]]}, r"input_ids is int64 \[2, 1\]"),
        ({"attention_mask": [[1]]}, "no input 'attention_mask'; the inputs are input_ids, e"),
        ({"input_ids": [[BEGIN]], "cache_position": [3]}, r"cache_position is \[3\], but .* \[0\]"),
        (
            {"input_ids": [[BEGIN]], "encoder_hidden_states": np.zeros((1, 9, 32), np.float32)},
            r"encoder_hidden_states is float32 \[1, 9, 32\], not f32 \[1, 40, 32\]",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_rejected_and_change_nothing(
    text, another, hear, inputs, message: str
) -> None:
    given = {
        n: v if isinstance(v, np.ndarray) else np.array(v, np.int64) for n, v in inputs.items()
    }
    with pytest.raises(TensorError, match=message):
        text.request.infer(given)
    np.testing.assert_array_equal(told(text, hear(1), 5), told(type(text)(another()), hear(1), 5))


def test_saving_a_text_is_rejected(text, tmp_path) -> None:
    for call in (text.request.save_state, text.request.load_state):
        with pytest.raises(StateError, match="cannot be saved, as the file would not hold"):
            call(tmp_path / "text")


@pytest.mark.parametrize("wrong", [-1, VOCABULARY, 10**6])
def test_an_id_outside_the_vocabulary_is_rejected_and_changes_nothing(
    text, another, hear, wrong: int
) -> None:
    expected = told(type(text)(another()), hear(1), 6)
    begun = text.begin(BEGIN, *IDS[:2], audio=hear(1))
    with pytest.raises(TensorError, match=rf"input_ids\[0, 0\] is {wrong},.*{VOCABULARY}"):
        text.tell(wrong)
    with pytest.raises(TensorError, match=rf"input_ids\[0, 1\] is {wrong}"):
        text.begin(BEGIN, wrong, audio=hear(2))
    np.testing.assert_array_equal(np.concatenate([begun, text.tell(*IDS[2:6])]), expected)
