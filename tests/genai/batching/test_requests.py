"""Requests: handles, steps, and which requests run."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from tests.genai.batching.conftest import TABLE, Pipes, greedy, run_steps

from genai_layer import (
    ConfigError,
    GenAIError,
    GenerationConfig,
    GenerationFinishReason,
    GenerationStatus,
    LLMPipeline,
    PromptError,
    RuntimeFailure,
)
from genai_layer.batching.request_pool import RequestPool

PROMPTS = ("hello", "what is it?")


def test_each_step_passes_a_token_to_the_handle(pipes: Pipes) -> None:
    pipe = pipes()
    handle = pipe.add_request(7, "hello", greedy(3))
    assert (handle.get_status(), handle.can_read()) == (GenerationStatus.RUNNING, False)
    for step in range(3):
        pipe.step()
        output = handle.read()[0]
        assert (len(output.generated_ids), output.generated_log_probs) == (1, [0.0])
        last = step == 2
        expected = GenerationFinishReason.LENGTH if last else GenerationFinishReason.NONE
        assert (output.finish_reason, handle.can_read()) == (expected, False)
    assert handle.get_status() is GenerationStatus.FINISHED
    assert (handle.read(), handle.read_all()) == ({}, [])
    assert not pipe.has_non_finished_requests()


def test_requests_of_two_texts_end_with_their_outputs(pipes: Pipes) -> None:
    pipe = pipes()
    handles = [pipe.add_request(n, text, greedy(4 + n)) for n, text in enumerate(PROMPTS)]
    run_steps(pipe)
    for number, handle in enumerate(handles):
        (output,) = handle.read_all()
        assert len(output.generated_ids) == 4 + number
        assert output.finish_reason is GenerationFinishReason.LENGTH


def test_no_chat_template_is_applied_to_a_text(pipes: Pipes) -> None:
    pipe = pipes()
    handle = pipe.add_request(0, "hello", greedy(1))
    run_steps(pipe)
    assert handle.get_perf_metrics().get_num_input_tokens() == len("hello")


@pytest.mark.parametrize("ids", [np.array([7, 8, 9]), np.array([[7, 8, 9]]), [7, 8, 9]])
def test_a_prompt_may_be_ids(pipes: Pipes, ids: object) -> None:
    pipe = pipes()
    expected = pipe.add_request(0, np.array([[7, 8, 9]]), greedy())
    handle = pipe.add_request(1, input_ids=ids, generation_config=greedy())
    run_steps(pipe)
    assert handle.read_all() == expected.read_all()


def test_log_probabilities_sum_up_to_the_score(pipes: Pipes) -> None:
    pipe = pipes()
    handle = pipe.add_request(0, "hello", greedy(6, logprobs=1))
    run_steps(pipe)
    (output,) = handle.read_all()
    assert output.score < 0
    assert sum(output.generated_log_probs) == pytest.approx(output.score)


@pytest.mark.parametrize("values", [{}, {"num_beams": 3, "num_return_sequences": 2}], ids=str)
def test_an_echoed_prompt_has_the_log_probabilities_of_its_tokens(pipes: Pipes, values) -> None:
    pipe, ids = pipes(), [7, 8, 9]
    plain = pipe.add_request(0, ids, greedy(4, logprobs=3, **values))
    handle = pipe.add_request(1, ids, greedy(4, logprobs=3, echo=True, **values))
    run_steps(pipe)
    for output, expected in zip(handle.read_all(), plain.read_all(), strict=True):
        assert (output.echoed, output.generated_ids[:3]) == (3, ids)
        assert output.generated_ids[3:] == expected.generated_ids
        assert output.generated_log_probs[3:] == expected.generated_log_probs
        assert (output.text, output.score) == (expected.text, expected.score)
        assert output.generated_log_probs[0] == 1
        for place, before in enumerate(ids[:2], 1):
            exact = TABLE[before] - np.log(np.exp(TABLE[before], dtype=np.float64).sum())
            assert output.generated_log_probs[place] == pytest.approx(exact[ids[place]])
            best = np.argsort(-exact)[:3].tolist()
            assert [token for token, _ in output.alternatives[place]] == best


def test_a_prompt_alone_may_be_echoed(pipes: Pipes) -> None:
    pipe = pipes()
    handle = pipe.add_request(0, [7, 8, 9], greedy(0, echo=True))
    run_steps(pipe)
    (output,) = handle.read_all()
    assert (output.echoed, output.generated_ids, output.text) == (3, [7, 8, 9], "")


@pytest.mark.parametrize(
    "values", [{}, {"do_sample": True, "num_return_sequences": 2, "rng_seed": 5}], ids=str
)
def test_each_token_has_its_alternatives(pipes: Pipes, values) -> None:
    pipe = pipes()
    handle = pipe.add_request(0, "hello", greedy(6, logprobs=4, **values))
    run_steps(pipe)
    for output in handle.read_all():
        assert [len(tokens) for tokens in output.alternatives] == [4] * 6
        for token, value, tokens in zip(
            output.generated_ids, output.generated_log_probs, output.alternatives, strict=True
        ):
            assert dict(tokens).get(token, value) == pytest.approx(value)
            assert tokens[0][1] >= value - 1e-6


@pytest.mark.parametrize(
    "values",
    [
        {"do_sample": True, "num_return_sequences": 3, "temperature": 2.0},
        {"num_beams": 4, "num_return_sequences": 3},
    ],
    ids=str,
)
def test_several_sequences_are_passed_on_together(pipes: Pipes, alone: LLMPipeline, values) -> None:
    pipe, config = pipes(), greedy(5, **values)
    handle = pipe.add_request(0, [[7, 8, 9]], config)
    steps = run_steps(pipe)
    assert steps == 5
    outputs = handle.read()
    assert len(outputs) == 3
    expected = alone.generate([[7, 8, 9]], config)
    assert [output.generated_ids for output in outputs.values()] == expected.tokens
    assert [output.score for output in outputs.values()] == expected.scores


def test_tokens_of_an_excluded_stop_string_are_not_passed_on(pipes: Pipes) -> None:
    pipe = pipes()
    handle = pipe.add_request(0, "hello", greedy(8))
    run_steps(pipe)
    ids = handle.read_all()[0].generated_ids
    stop = pipe.get_tokenizer().decode(ids[3:5])
    stopped = pipe.add_request(0, "hello", greedy(8, stop_strings={stop}))
    run_steps(pipe)
    (output,) = stopped.read_all()
    assert output.finish_reason is GenerationFinishReason.STOP
    assert output.generated_ids == ids[:3]


def test_as_many_sequences_run_as_the_scheduler_allows(pipes: Pipes) -> None:
    pipe = pipes(max_num_seqs=2)
    handles = [pipe.add_request(number, "hello", greedy(3)) for number in range(3)]
    for _ in range(3):
        pipe.step()
    metrics = pipe.get_metrics()
    assert (metrics.requests, metrics.scheduled_requests, metrics.cache_usage) == (3, 2, 100.0)
    assert not handles[2].can_read()
    run_steps(pipe)
    assert [len(one.read_all()[0].generated_ids) for one in handles] == [3, 3, 3]


def test_a_request_with_more_sequences_than_places_runs_alone(pipes: Pipes) -> None:
    pipe = pipes(max_num_seqs=2)
    handles = [
        pipe.add_request(0, "hello", greedy(3)),
        pipe.add_request(1, "hello", greedy(3, num_beams=4)),
        pipe.add_request(2, "hello", greedy(3)),
    ]
    assert run_steps(pipe) >= 9
    assert [len(one.read_all()[0].generated_ids) for one in handles] == [3, 3, 3]


def test_metrics_are_those_of_a_request(pipes: Pipes) -> None:
    pipe = pipes()
    handle = pipe.add_request(0, "hello", greedy(4))
    for getter in (handle.get_perf_metrics, handle.get_vlm_perf_metrics):
        with pytest.raises(GenAIError, match="has not ended"):
            getter()
    run_steps(pipe)
    with pytest.raises(GenAIError, match="no images"):
        handle.get_vlm_perf_metrics()
    metrics = handle.get_perf_metrics()
    assert metrics.get_num_generated_tokens() == 4
    raw = metrics.raw_metrics
    counted = raw.token_infer_durations, raw.sampling_durations, raw.m_new_token_times
    assert [len(one) for one in counted] == [4, 4, 4]
    assert [len(raw.inference_durations), len(raw.generate_durations)] == [1, 1]


@pytest.mark.parametrize("act", ["stop", "cancel"])
def test_a_dropped_request_leaves_its_place_in_the_next_step(pipes: Pipes, act: str) -> None:
    pipe = pipes(max_num_seqs=1)
    first, second = (pipe.add_request(number, "hello", greedy(9)) for number in range(2))
    pipe.step()
    getattr(first, act)()
    assert first.get_status().name == act.upper()
    assert not first.can_read()
    for read in (first.read, first.read_all):
        with pytest.raises(GenAIError, match="stopped or cancelled"):
            read()
    pipe.step()
    assert second.can_read()
    assert first.get_status().name == act.upper()
    assert first.get_perf_metrics().get_num_generated_tokens() == 1


def test_a_request_dropped_before_its_first_step_never_runs(pipes: Pipes) -> None:
    pipe = pipes()
    handle = pipe.add_request(0, "hello", greedy())
    handle.stop(GenerationFinishReason.TOOL_CALL)
    assert pipe.has_non_finished_requests()
    pipe.step()
    assert not pipe.has_non_finished_requests()
    assert pipe.get_metrics().scheduled_requests == 0


def test_a_request_without_a_handle_is_stopped(pipes: Pipes) -> None:
    pipe = pipes()
    pipe.add_request(0, "hello", greedy(100))
    gc.collect()
    assert run_steps(pipe) == 1


@pytest.mark.parametrize(
    ("prompt", "values", "error", "message"),
    [
        ("hello", {"max_length": 1, "ignore_eos": True}, ConfigError, "max_length = 1"),
        ("hello", {"max_new_tokens": 0}, ConfigError, "max_new_tokens = 0"),
        ("", {"max_new_tokens": 1}, PromptError, "empty"),
        ([], {"max_new_tokens": 1}, PromptError, "empty"),
        ([[]], {"max_new_tokens": 1}, PromptError, "empty"),
        ([[1], [2]], {"max_new_tokens": 1}, PromptError, "2 rows"),
        ([[1 << 20]], {"max_new_tokens": 1}, PromptError, "token id"),
        ([[1]], {"max_new_tokens": 1, "logit_bias": {1 << 20: 1}}, ConfigError, "id 1048576"),
        ([[1]], {"max_new_tokens": 1, "logit_bias": {1: 101}}, ConfigError, "from -100 to 100"),
    ],
    ids=str,
)
def test_a_wrong_request_is_rejected_when_added(pipes: Pipes, prompt, values, error, message):
    pipe = pipes()
    with pytest.raises(error, match=message):
        pipe.add_request(0, prompt, GenerationConfig(**values))
    assert not pipe.has_non_finished_requests()


def test_a_request_needs_one_prompt_and_parameters(pipes: Pipes) -> None:
    pipe = pipes()
    with pytest.raises(TypeError, match="prompt or input_ids"):
        pipe.add_request(0, "hello", greedy(), input_ids=[[7]])
    with pytest.raises(TypeError, match="prompt or input_ids"):
        pipe.add_request(0, generation_config=greedy())
    with pytest.raises(ConfigError, match="generation_config = 3: pass a GenerationConfig"):
        pipe.add_request(0, "hello", 3)


def test_a_number_is_used_by_one_request_at_a_time(pipes: Pipes) -> None:
    pipe = pipes()
    handle = pipe.add_request(1, "hello", greedy())
    with pytest.raises(ConfigError, match="request_id = 1"):
        pipe.add_request(1, "hello", greedy())
    with pytest.raises(ConfigError, match="request_id = -1"):
        pipe.add_request(-1, "hello", greedy())
    run_steps(pipe)
    pipe.add_request(1, "hello", greedy())
    assert handle.read_all()


def test_a_failing_request_leaves_the_others_running(pipes: Pipes) -> None:
    pipe = pipes(capacity=12)
    failing, other = (pipe.add_request(n, text, greedy(8)) for n, text in enumerate(PROMPTS[::-1]))
    run_steps(pipe)
    assert failing.get_status() is GenerationStatus.IGNORED
    assert failing.can_read()
    with pytest.raises(RuntimeFailure, match="capacity"):
        failing.read_all()
    assert len(other.read_all()[0].generated_ids) == 8


def test_an_interrupt_leaves_a_request_waiting(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    pipe = pipes()
    handle = pipe.add_request(0, "hello", greedy(3))
    with monkeypatch.context() as patch:
        patch.setattr(RequestPool, "take", interrupt)
        with pytest.raises(KeyboardInterrupt):
            pipe.step()
    run_steps(pipe)
    assert len(handle.read_all()[0].generated_ids) == 3


def test_blocks_limit_the_tokens_of_a_request(pipes: Pipes) -> None:
    pipe = pipes(num_kv_blocks=1)
    handle = pipe.add_request(0, "hello", greedy(100, ignore_eos=True))
    run_steps(pipe)
    (output,) = handle.read_all()
    assert len(output.generated_ids) == 32 + 1 - len("hello")
    assert output.finish_reason is GenerationFinishReason.CAPACITY
    assert handle.get_status() is GenerationStatus.IGNORED
    with pytest.raises(PromptError, match="num_kv_blocks = 1"):
        pipe.add_request(0, "hello" * 7, greedy())


def test_other_threads_add_requests_and_read(pipes: Pipes, alone: LLMPipeline) -> None:
    pipe, config = pipes(max_num_seqs=3), greedy(6)
    found: dict[int, list[int]] = {}

    def ask(number: int) -> None:
        handle = pipe.add_request(number, [[7 + number]], config)
        found[number] = handle.read_all()[0].generated_ids

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        pipe.step()
    assert [found[n] for n in range(8)] == [
        alone.generate([[7 + n]], config).tokens[0] for n in range(8)
    ]


def test_a_step_without_requests_does_nothing(pipes: Pipes) -> None:
    pipe = pipes()
    pipe.step()
    assert pipe.get_metrics().requests == 0


@pytest.mark.parametrize(
    "values",
    [{}, {"stop_strings": {"no such text"}}, {"do_sample": True, "num_return_sequences": 2}],
    ids=["passed at once", "held", "several"],
)
def test_texts_of_the_steps_are_that_of_the_tokens(pipes: Pipes, values) -> None:
    pipe, config = pipes(), greedy(30, apply_chat_template=False, **values)
    handle = pipe.add_request(0, "hello", config)
    run_steps(pipe)
    found = [output.text for output in handle.read_all()]
    assert found == pipe.generate("hello", config)[0].m_generation_ids


def test_a_request_begins_when_a_place_is_free(pipes: Pipes) -> None:
    pipe = pipes(max_num_seqs=1)
    handles = [pipe.add_request(n, "hello", greedy(3)) for n in range(2)]
    assert [one.has_begun() for one in handles] == [False, False]
    pipe.step()
    assert [one.has_begun() for one in handles] == [True, False]
    run_steps(pipe)
    assert [one.has_begun() for one in handles] == [True, True]
