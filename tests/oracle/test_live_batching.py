"""Continuous batching, compared to the real openvino_genai, live.

Skipped unless openvino_genai and openvino_tokenizers are installed. Both run the demo model on the
real CPU plugin in f32; texts of the simulated NPU are compared, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

BOTH = (ours, theirs)
EXACTLY = {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f32"}
QUESTIONS = ["What is an NPU?", "Who reads a blob?", "What is a blob?"]


def make(package: Any, folder: Path, device: str = "CPU", **settings: Any) -> Any:
    """Return a pipeline of a package with settings of the scheduler."""
    config = package.SchedulerConfig()
    for name, value in settings.items():
        setattr(config, name, value)
    properties = EXACTLY if device == "CPU" else {"MAX_PROMPT_LEN": 128, "MIN_RESPONSE_LEN": 64}
    return package.ContinuousBatchingPipeline(folder, config, device, properties)


@pytest.fixture(scope="module")
def pipes(genai_folder: Path) -> list[Any]:
    """Both pipelines."""
    return [make(package, genai_folder) for package in BOTH]


def config(package: Any, pipe: Any, **values: Any) -> Any:
    """Return the model's parameters with some values changed."""
    found = pipe.get_config()
    for name, value in values.items():
        setattr(found, name, value)
    return found


def both(pipes: list[Any], act: Callable[[Any, Any], Any]) -> list[Any]:
    """Return what an action gives in each package."""
    return [act(package, pipe) for package, pipe in zip(BOTH, pipes, strict=True)]


def about(package: Any, values: Any) -> Any:
    """Return values of ours; and those that they have to be near."""
    return values if package is ours else pytest.approx(values, abs=2e-3, rel=2e-3)


def summary(package: Any, result: Any) -> tuple[Any, ...]:
    """Return the fields of a result, with names in place of enumerations."""
    scores = about(package, result.m_scores)
    if hasattr(result, "m_status"):
        return result.m_request_id, result.m_generation_ids, scores, result.m_status.name
    reasons = [reason.name for reason in result.finish_reasons]
    return result.m_request_id, result.m_generation_ids, scores, reasons


def read(package: Any, outputs: Any) -> list[tuple[Any, ...]]:
    """Return the fields of outputs, highest score first, with names in place of enumerations."""
    return [
        (
            list(one.generated_ids),
            about(package, list(one.generated_log_probs)),
            about(package, one.score),
            one.finish_reason.name,
        )
        for one in sorted(outputs, key=lambda one: -one.score)
    ]


METHODS: list[list[dict[str, Any]]] = [
    [{"max_new_tokens": 12}] * 3,
    [{"max_new_tokens": 3}, {"max_new_tokens": 30}, {"max_new_tokens": 9}],
    [
        {"max_new_tokens": 9},
        {"max_new_tokens": 9, "num_beams": 3, "num_return_sequences": 2},
        {"max_new_tokens": 6, "logprobs": 1},
    ],
    [
        {"max_new_tokens": 9, "echo": True},
        {"max_new_tokens": 20, "stop_strings": {"blob"}, "include_stop_str_in_output": True},
        {"max_length": 40},
    ],
]


@pytest.mark.parametrize("methods", METHODS, ids=str)
def test_results_of_prompts_are_equal(pipes, methods) -> None:
    found, expected = both(
        pipes,
        lambda package, pipe: [
            summary(package, one)
            for one in pipe.generate(QUESTIONS, [config(package, pipe, **m) for m in methods])
        ],
    )
    assert found == expected


def test_results_of_ids_are_equal(pipes) -> None:
    import openvino as ov

    prompts = [ov.Tensor(np.array([ids], np.int64)) for ids in ([294, 33, 912], [990])]
    found, expected = both(
        pipes,
        lambda package, pipe: [
            summary(package, one)
            for one in pipe.generate(prompts, [config(package, pipe, max_new_tokens=6)] * 2)
        ],
    )
    assert found == expected


def test_results_of_chats_are_equal(pipes) -> None:
    def chat(package: Any, pipe: Any) -> list[Any]:
        one = config(package, pipe, max_new_tokens=9)
        history = package.ChatHistory([{"role": "user", "content": QUESTIONS[0]}])
        results = pipe.generate([history], [one])
        with pytest.deprecated_call():
            pipe.start_chat("Be brief.")
        results += pipe.generate(QUESTIONS[0], one)
        results += pipe.generate([QUESTIONS[1]], [one])
        with pytest.deprecated_call():
            pipe.finish_chat()
        tokens = [result.perf_metrics.get_num_input_tokens() for result in results]
        return [*(summary(package, one) for one in results), tokens, repr(results[0])]

    found, expected = both(pipes, chat)
    assert found == expected


@pytest.mark.parametrize("answer", ["RUNNING", "STOP", "CANCEL"])
def test_streamers_have_equal_effects(pipes, answer) -> None:
    """The real pipeline computes some more tokens before it has heard the answer."""

    def status(package: Any, pipe: Any) -> str:
        given = getattr(package.StreamingStatus, answer)
        (result,) = pipe.generate(
            QUESTIONS[0], config(package, pipe, max_new_tokens=60), lambda _: given
        )
        return result.m_status.name

    found, expected = both(pipes, status)
    assert found == expected


@pytest.mark.parametrize(
    "values",
    [
        {"max_new_tokens": 4},
        {"max_new_tokens": 4, "logprobs": 1},
        {"max_new_tokens": 5, "num_beams": 2, "num_return_sequences": 2},
        {"max_new_tokens": 6, "stop_token_ids": {2, 1859}},
    ],
    ids=str,
)
def test_handles_read_equal_outputs(pipes, values) -> None:
    def outputs(package: Any, pipe: Any) -> list[Any]:
        one = config(package, pipe, **values)
        found: list[Any] = []
        handle = pipe.add_request(3, QUESTIONS[0], one)
        while pipe.has_non_finished_requests():
            pipe.step()
            found.append(handle.can_read())
            if handle.can_read():
                found += read(package, handle.read().values())
        return [*found, handle.get_status().name, handle.can_read()]

    found, expected = both(pipes, outputs)
    if expected[-1]:  # the real handle has an empty output in addition
        expected[-1] = False
    assert found == expected


@pytest.mark.parametrize(
    "values",
    [
        {"max_new_tokens": 4},
        {"max_new_tokens": 1, "logprobs": 1},
        {"max_new_tokens": 5, "num_beams": 2, "num_return_sequences": 2},
    ],
    ids=str,
)
def test_echoed_prompts_have_equal_scores(pipes, genai_folder, values) -> None:
    def outputs(package: Any, pipe: Any) -> list[Any]:
        one = config(package, pipe, echo=True, **values)
        handle = pipe.add_request(3, QUESTIONS[0], one)
        while pipe.has_non_finished_requests():
            pipe.step()
        return read(package, handle.read_all())

    found, expected = both(pipes, outputs)
    assert found == expected
    assert outputs(ours, make(ours, genai_folder, "NPU")) == expected


@pytest.mark.parametrize("act", ["stop", "cancel"])
@pytest.mark.parametrize("steps", [0, 2])
def test_dropped_requests_leave_equally(pipes, act, steps) -> None:
    def states(package: Any, pipe: Any) -> list[Any]:
        handle = pipe.add_request(3, QUESTIONS[0], config(package, pipe, max_new_tokens=9))
        for _ in range(steps):
            pipe.step()
        getattr(handle, act)()
        found = [handle.get_status().name, handle.can_read(), pipe.has_non_finished_requests()]
        for reading in (handle.read, handle.read_all):
            with pytest.raises(RuntimeError):
                reading()
        pipe.step()
        return [*found, pipe.has_non_finished_requests()]

    found, expected = both(pipes, states)
    assert found == expected


@pytest.mark.parametrize(("act", "status"), [("stop", "STOP"), ("cancel", "CANCEL")])
def test_a_dropped_request_keeps_its_status_here(pipes, act, status) -> None:
    """A real step without tokens counts as a full cache, so that a lone request is ignored."""

    def statuses(package: Any, pipe: Any) -> list[str]:
        found: list[str] = []
        for texts in (QUESTIONS[:1], QUESTIONS[:2]):
            one = config(package, pipe, max_new_tokens=3)
            handles = [pipe.add_request(n, text, one) for n, text in enumerate(texts)]
            getattr(handles[0], act)()
            while pipe.has_non_finished_requests():
                pipe.step()
            found.append(handles[0].get_status().name)
        return found

    assert both(pipes, statuses) == [[status, status], ["IGNORED", status]]


def test_blocks_limit_equally(genai_folder) -> None:
    def lengths(package: Any) -> list[Any]:
        pipe = make(package, genai_folder, num_kv_blocks=2)
        endless = config(package, pipe, max_new_tokens=500, ignore_eos=True)
        handle = pipe.add_request(1, QUESTIONS[0], endless)
        while pipe.has_non_finished_requests():
            pipe.step()
        return [len(handle.read_all()[0].generated_ids), handle.get_status().name]

    assert lengths(ours) == lengths(theirs)


def test_metrics_of_growing_caches_are_equal(pipes) -> None:
    def metrics(package: Any, pipe: Any) -> list[float]:
        pipe.generate(QUESTIONS, [config(package, pipe, max_new_tokens=5)] * len(QUESTIONS))
        last = pipe.get_metrics()
        usages = [last.cache_usage, last.max_cache_usage, last.avg_cache_usage]
        return [last.requests, last.scheduled_requests, *usages]

    found, expected = both(pipes, metrics)
    assert found == expected


def test_texts_of_an_npu_are_equal(pipes, genai_folder) -> None:
    npu = make(ours, genai_folder, "NPU", max_num_seqs=3)
    found, expected = (
        [
            one.m_generation_ids
            for one in pipe.generate(
                QUESTIONS, [config(package, pipe, max_new_tokens=20)] * len(QUESTIONS)
            )
        ]
        for package, pipe in ((ours, npu), (theirs, pipes[1]))
    )
    assert found == expected
