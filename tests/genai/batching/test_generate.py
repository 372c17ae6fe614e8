"""Generation from all prompts of a call."""

from __future__ import annotations

import numpy as np
import pytest
from tests.genai.batching.conftest import Pipes, greedy, run_steps

from genai_layer import (
    BusyError,
    ChatHistory,
    ConfigError,
    GenerationFinishReason,
    GenerationStatus,
    LLMPipeline,
    PromptError,
    StreamingStatus,
)
from genai_layer.batching.results import GenerationResult

PROMPTS = ["hello", "what is it?", "a"]


def test_texts_are_those_of_prompts_alone(pipes: Pipes, alone: LLMPipeline) -> None:
    configs = [
        greedy(4),
        greedy(9, do_sample=True, rng_seed=3, temperature=2.0),
        greedy(6, num_beams=3, num_return_sequences=2, echo=True),
    ]
    results = pipes().generate(PROMPTS, configs)
    for number, (text, config, result) in enumerate(zip(PROMPTS, configs, results, strict=True)):
        expected = alone.generate([text], config)
        assert (result.m_request_id, result.m_status) == (number, GenerationStatus.FINISHED)
        assert result.get_generation_ids() == result.m_generation_ids == expected.texts
        assert result.m_scores == expected.scores
        assert result.extended_perf_metrics is None
        tokens = expected.perf_metrics.get_num_input_tokens()
        assert result.perf_metrics.get_num_input_tokens() == tokens


def test_one_text_needs_no_lists(pipes: Pipes) -> None:
    pipe = pipes()
    (result,) = pipe.generate("hello", greedy())
    assert pipe.generate(["hello"], [greedy()])[0].m_generation_ids == result.m_generation_ids
    named = pipe.generate(prompt="hello", generation_config=greedy())
    assert named[0].m_generation_ids == result.m_generation_ids


def test_ids_give_ids(pipes: Pipes, alone: LLMPipeline) -> None:
    prompts = [np.array([[7, 8, 9]]), np.array([[5]])]
    results = pipes().generate(prompts, [greedy(3)] * 2)
    for ids, result in zip(prompts, results, strict=True):
        assert result.m_generation_ids == alone.generate(ids, greedy(3)).tokens
        assert result.finish_reasons == [GenerationFinishReason.LENGTH]


def test_histories_are_templated(pipes: Pipes) -> None:
    pipe, history = pipes(), ChatHistory([{"role": "user", "content": "hello"}])
    (chat,) = pipe.generate([history], [greedy()])
    (text,) = pipe.generate("hello", greedy())
    assert chat.m_generation_ids == text.m_generation_ids
    assert len(history) == 1


def test_a_chat_keeps_its_turns(pipes: Pipes, alone: LLMPipeline) -> None:
    pipe, found = pipes(), [list[str](), list[str]()]
    for one in (pipe, alone):
        with pytest.deprecated_call():
            one.start_chat("Be brief.")
    for text in ("hello", "and?"):
        found[0] += pipe.generate([text], [greedy(4)])[0].m_generation_ids
        found[1].append(alone.generate(text, greedy(4)))
    with pytest.raises(PromptError, match="one text per turn"):
        pipe.generate(["a", "b"], [greedy(4)] * 2)
    for one in (pipe, alone):
        with pytest.deprecated_call():
            one.finish_chat()
    assert found[0] == found[1]
    assert pipe.generate("hello", greedy(4))[0].m_generation_ids == [
        alone.generate("hello", greedy(4))
    ]


def test_a_cancelled_turn_is_not_kept(pipes: Pipes) -> None:
    pipe = pipes()
    with pytest.deprecated_call():
        pipe.start_chat()
    (result,) = pipe.generate("hello", greedy(4), lambda _: StreamingStatus.CANCEL)
    assert result.m_status is GenerationStatus.CANCEL
    (again,) = pipe.generate("hello", greedy(4))
    with pytest.deprecated_call():
        pipe.finish_chat()
    assert again.m_generation_ids == pipe.generate("hello", greedy(4))[0].m_generation_ids


def test_a_streamer_receives_the_text(pipes: Pipes) -> None:
    parts: list[str] = []
    (result,) = pipes().generate("hello", greedy(6), parts.append)
    assert ["".join(parts)] == result.m_generation_ids
    assert len(parts) > 1


@pytest.mark.parametrize("answer", [StreamingStatus.STOP, StreamingStatus.CANCEL])
def test_a_streamer_ends_the_generation(pipes: Pipes, answer: StreamingStatus) -> None:
    pipe = pipes()
    (result,) = pipe.generate("hello", greedy(6), lambda _: answer)
    assert result.m_status.name == answer.name
    assert result.perf_metrics.get_num_generated_tokens() < 6
    assert not pipe.has_non_finished_requests()


def test_an_exception_of_a_streamer_reaches_the_caller(pipes: Pipes) -> None:
    pipe = pipes()

    def fail(_: str) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        pipe.generate("hello", greedy(6), fail)
    assert not pipe.has_non_finished_requests()
    assert pipe.generate("hello", greedy(6))


def test_an_interrupt_leaves_the_pipeline_usable(pipes: Pipes) -> None:
    pipe = pipes()

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pipe.generate("hello", greedy(6), interrupt)
    assert not pipe.has_non_finished_requests()
    assert pipe.generate("hello", greedy(6))


def test_a_streamer_may_add_requests_but_not_run_steps(pipes: Pipes) -> None:
    pipe = pipes()
    handles = []

    def stream(_: str) -> None:
        if not handles:
            handles.append(pipe.add_request(0, "hello", greedy(3)))
            with pytest.raises(BusyError):
                pipe.step()

    pipe.generate("hello", greedy(6), stream)
    run_steps(pipe)
    assert len(handles[0].read_all()[0].generated_ids) == 3


@pytest.mark.parametrize(
    ("prompts", "configs", "error", "message"),
    [
        ([], [], ConfigError, "generation_config"),
        ([], [greedy()], PromptError, "at least one"),
        (np.array([[1, 2], [3, 4]]), [greedy()] * 2, PromptError, "prompts = array"),
        ("a", [greedy()], PromptError, "a text, not a list"),
        (["a"], [{"max_new_tokens": 1}], ConfigError, "a list of GenerationConfig"),
        (["a", "b"], [greedy()], ConfigError, "1 for 2 prompts"),
        (["a", "b"], greedy(), ConfigError, "one for each prompt"),
        ("a", None, ConfigError, "generation_config = None"),
        (
            ["a", ChatHistory()],
            [greedy()] * 2,
            PromptError,
            "prompts = .*: pass a str, a list of str",
        ),
        ([ChatHistory()], [greedy()], PromptError, "history is empty"),
        ([[[1, 2], [3, 4]]], [greedy()], PromptError, "2 rows"),
        ([object()], [greedy()], PromptError, "prompts = "),
    ],
)
def test_wrong_calls_are_rejected(pipes: Pipes, prompts, configs, error, message) -> None:
    pipe = pipes()
    with pytest.raises(error, match=message):
        pipe.generate(prompts, configs)
    assert not pipe.has_non_finished_requests()


def test_prompts_are_passed_once(pipes: Pipes) -> None:
    with pytest.raises(TypeError, match="pass one of prompts"):
        pipes().generate("a", greedy(), prompt="b")
    with pytest.raises(TypeError, match="pass one of prompts"):
        pipes().generate(generation_config=greedy())


def test_streaming_needs_one_text(pipes: Pipes) -> None:
    with pytest.raises(ConfigError, match="streamer"):
        pipes().generate(["a", "b"], [greedy()] * 2, print)


def test_generate_waits_for_no_other_requests(pipes: Pipes) -> None:
    pipe = pipes()
    handle = pipe.add_request(0, "hello", greedy())
    with pytest.raises(BusyError, match="have not ended"):
        pipe.generate("hello", greedy())
    run_steps(pipe)
    assert handle.read_all()
    assert pipe.generate("hello", greedy())


def test_one_failing_prompt_ends_the_call(pipes: Pipes) -> None:
    pipe = pipes(capacity=40)
    with pytest.raises(RuntimeError, match="capacity"):
        pipe.generate(["a", "b" * 30], [greedy(90)] * 2)
    assert not pipe.has_non_finished_requests()


def test_cache_usage_begins_anew_with_each_call(pipes: Pipes) -> None:
    pipe = pipes(num_kv_blocks=2)
    pipe.generate([[[7] * 20], [[7]]], [greedy(13)] * 2)
    assert pipe.get_metrics().max_cache_usage == 50.0
    pipe.generate([[[7] * 16]], [greedy(1)])
    metrics = pipe.get_metrics()
    assert (metrics.max_cache_usage, metrics.avg_cache_usage) == (25.0, 25.0)


def test_a_cache_that_grows_is_full(pipes: Pipes) -> None:
    pipe = pipes()
    pipe.generate(PROMPTS, [greedy()] * 3)
    assert pipe.get_metrics().cache_usage == 100.0


def test_a_result_prints_its_texts() -> None:
    result = GenerationResult(3, ["one", "two"], [0.0, -1.5])
    expected = "<py_continuous_batching.GenerationResult 3\n{ 0, one }\n{ -1.5, two }\n\n>"
    assert repr(result) == str(result) == expected
    result.m_scores = []
    assert "\n{ one }\n{ two }\n" in repr(result)
