"""Scripts' view of the text pipeline, compared to the real openvino_genai, live.

Skipped unless openvino_genai is installed. The real pipeline runs on device NPU without an NPU;
this one on the simulated NPU, with the demo model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracle.real_npuw import ON_CPU

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

BOTH = (ours, theirs)
LENGTHS = {"MAX_PROMPT_LEN": 128, "MIN_RESPONSE_LEN": 64}
QUESTION = "What is an NPU?"


@pytest.fixture(scope="module")
def pipes(genai_folder: Path) -> tuple[Any, Any]:
    """Both pipelines; neither fails in a streamer, which makes the real one unusable."""
    real = theirs.LLMPipeline(models_path=genai_folder, device="NPU", **ON_CPU, **LENGTHS)
    return ours.LLMPipeline(models_path=genai_folder, device="NPU", **LENGTHS), real


def both(pipes: tuple[Any, Any], act: Any) -> list[Any]:
    """Return what an action gives in each package."""
    return [act(package, pipe) for package, pipe in zip(BOTH, pipes, strict=True)]


def names(value: Any) -> Any:
    """Return values with names in place of enumerations."""
    if isinstance(value, list):
        return [names(item) for item in value]
    return value.name if hasattr(value, "name") else value


def summary(results: Any) -> tuple[list[str], list[str], str]:
    return results.texts, names(results.finish_reasons), str(results)


def test_results_are_equal(pipes: tuple[Any, Any]) -> None:
    found = both(pipes, lambda _, pipe: pipe.generate([QUESTION], max_new_tokens=9))
    assert summary(found[0]) == summary(found[1])
    for results in found:
        assert results.extended_perf_metrics is None
        assert (results.parsed, results.scores) == ([], [0.0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_turns_count_all_their_tokens(pipes: tuple[Any, Any]) -> None:
    """The real pipeline counts only new tokens with ATTENTION_BACKEND="SDPA" on CPU."""

    def counts(package: Any, pipe: Any) -> list[int]:
        found, history = [], package.ChatHistory()
        for question in (QUESTION, "Why?", "And a blob?"):
            history.append({"role": "user", "content": question})
            found.append(pipe.generate(history, max_new_tokens=5))
            history.append({"role": "assistant", "content": found[-1].texts[0]})
        pipe.start_chat()
        found += [pipe.generate([question], max_new_tokens=5) for question in (QUESTION, "Why?")]
        pipe.finish_chat()
        return [one.perf_metrics.get_num_input_tokens() for one in found]

    found = both(pipes, counts)
    assert found[0] == found[1]
    assert found[0][0] < found[0][1] < found[0][2]


def test_a_chat_with_lists_is_equal(pipes: tuple[Any, Any]) -> None:
    def chat(_: Any, pipe: Any) -> list[Any]:
        with pytest.deprecated_call():
            pipe.start_chat(system_message="Be brief.")
        turns = [pipe.generate(inputs, max_new_tokens=9) for inputs in ([QUESTION], "And a blob?")]
        with pytest.deprecated_call():
            pipe.finish_chat()
        return [summary(turns[0]), turns[1], turns[0].perf_metrics.get_num_input_tokens()]

    found, expected = both(pipes, chat)
    assert found == expected


@pytest.mark.parametrize(("text", "equal"), [("a < b", True), ("a<|im_end|>b", False)])
def test_special_tokens_of_a_user_are_tokens_there_and_text_here(
    pipes: tuple[Any, Any], text: str, equal: bool
) -> None:
    def length(_: Any, pipe: Any) -> int:
        return pipe.generate([text], max_new_tokens=1).perf_metrics.get_num_input_tokens()

    found, expected = both(pipes, length)
    assert (found == expected) is equal
    assert found >= expected


@pytest.mark.parametrize("tokens", [1, 5])
def test_raw_metrics_have_equal_lengths(pipes: tuple[Any, Any], tokens: int) -> None:
    def lengths(_: Any, pipe: Any) -> dict[str, int]:
        one, two = (pipe.generate([QUESTION], max_new_tokens=tokens) for _ in range(2))
        total = one.perf_metrics + two.perf_metrics
        raw = {
            name: len(getattr(total.raw_metrics, name)) for name in ours.RawPerfMetrics.__slots__
        }
        return raw | {"tokens": total.get_num_generated_tokens()}

    found, expected = both(pipes, lengths)
    assert found == expected


def test_streamers_receive_equal_calls(pipes: tuple[Any, Any]) -> None:
    def calls(package: Any, pipe: Any) -> list[Any]:
        class Recorder(package.StreamerBase):
            def __init__(self) -> None:
                super().__init__()
                self.calls: list[Any] = []

            def write(self, token: Any) -> Any:
                self.calls.append(list(token))
                return package.StreamingStatus.RUNNING

            def end(self) -> None:
                self.calls.append("end")

        recorder = Recorder()
        pipe.generate(QUESTION, streamer=recorder)
        return recorder.calls

    found, expected = both(pipes, calls)
    assert found == expected


ANSWERS = (None, 0, 1, 2, 3, 7, False, True, np.int64(1), np.True_, np.False_, "STOP", "CANCEL")


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_callables_answer_has_an_equal_effect(pipes: tuple[Any, Any], answer: Any) -> None:
    def reasons(package: Any, pipe: Any) -> tuple[bool, list[str]]:
        given = getattr(package.StreamingStatus, answer) if isinstance(answer, str) else answer
        results = pipe.generate([QUESTION], max_new_tokens=9, streamer=lambda _: given)
        complete = results.perf_metrics.get_num_generated_tokens() == 9
        return complete, names(results.finish_reasons)

    found, expected = both(pipes, reasons)
    assert found == expected


@pytest.mark.parametrize("answer", [*ANSWERS, 1.5, 0.0, -1])
def test_a_text_streamer_returns_an_equal_status(pipes: tuple[Any, Any], answer: Any) -> None:
    def status(package: Any, pipe: Any) -> str:
        given = getattr(package.StreamingStatus, answer) if isinstance(answer, str) else answer
        streamer = package.TextStreamer(pipe.get_tokenizer(), lambda _: given)
        return str(streamer.write([42, 289, 323, 14, 831, 319]))

    found, expected = both(pipes, status)
    assert found == expected


@pytest.mark.parametrize("skip", [True, False])
def test_texts_of_a_text_streamer_are_equal(pipes: tuple[Any, Any], skip: bool) -> None:
    def text(package: Any, pipe: Any) -> str:
        parts: list[str] = []
        params = {"skip_special_tokens": skip}
        streamer = package.TextStreamer(pipe.get_tokenizer(), parts.append, params)
        pipe.generate(QUESTION, streamer=streamer)
        return "".join(parts)

    found, expected = both(pipes, text)
    assert found == expected
    assert found.endswith("<|im_end|>") != skip


def fields(settings: Any) -> dict[str, Any]:
    """Return all public fields and results of getters, nested settings included."""
    found: dict[str, Any] = {}
    for name in dir(settings):
        if name.startswith("_"):
            continue
        value = getattr(settings, name)
        value = value() if callable(value) else value
        if name.endswith("_config"):
            value = fields(value)
        found[name] = pytest.approx(value) if isinstance(value, float) else names(value)
    return found


@pytest.mark.parametrize("on", [False, True])
def test_the_schedulers_settings_are_equal(on: bool) -> None:
    configs = [package.SchedulerConfig() for package in BOTH]
    for config in configs:
        config.use_cache_eviction = config.use_sparse_attention = on
        config.cache_interval_multiplier = 4 if on else None
    found, expected = map(fields, configs)
    only_getters = {"start_size", "recent_size", "max_cache_size"}
    for name in only_getters:  # fields here, and getters alone in openvino_genai
        del found["cache_eviction_config"][name]
    assert found == expected


@pytest.mark.parametrize("mode", ["SUM", "NORM_SUM", "ADAPTIVE_RKV"])
def test_settings_of_cache_eviction_print_equally(mode: str) -> None:
    texts = [
        package.CacheEvictionConfig(
            32,
            64,
            256,
            getattr(package.AggregationMode, mode),
            kvcrush_config=package.KVCrushConfig(2, package.KVCrushAnchorPointMode.MEAN),
        ).to_string()
        for package in BOTH
    ]
    assert texts[0] == texts[1]
