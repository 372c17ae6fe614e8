"""Metrics: lists of measurements with openvino_genai's lengths, and what follows from them.

tests/oracle/test_live_genai.py compares the lengths to those of the real openvino_genai.
"""

from __future__ import annotations

import numpy as np
import pytest

from genai_layer import PerfMetrics, RawPerfMetrics
from genai_layer.errors import GenAIUsageError
from genai_layer.perf_metrics import MeanStdPair, SummaryStats
from genai_layer.testing.toy import ASSISTANT


def lengths(raw: RawPerfMetrics) -> dict[str, int]:
    return {name: len(getattr(raw, name)) for name in RawPerfMetrics.__slots__}


PER_TOKEN = (
    "token_infer_durations",
    "sampling_durations",
    "m_new_token_times",
    "m_batch_sizes",
)
PER_GENERATION = (
    "generate_durations",
    "inference_durations",
    "detokenization_durations",
    "m_times_to_first_token",
)
TEXT_ONLY = ("tokenization_durations", "chat_template_durations")


def test_raw_metrics_have_an_entry_per_token_or_per_generation(speaks) -> None:
    raw = speaks("hey").generate(["who?"]).perf_metrics.raw_metrics
    expected = dict.fromkeys(PER_TOKEN, 4) | dict.fromkeys(PER_GENERATION + TEXT_ONLY, 1)
    assert lengths(raw) == expected | {"m_durations": 3, "grammar_compile_times": 0}
    assert raw.m_batch_sizes == [1, 1, 1, 1]


def test_metrics_follow_from_the_raw_metrics(speaks) -> None:
    metrics = speaks("hey").generate(["who?"]).perf_metrics
    raw = metrics.raw_metrics
    assert metrics.get_num_generated_tokens() == 4
    assert raw.m_durations == pytest.approx(np.diff(raw.m_new_token_times) * 1000)
    assert metrics.get_tpot().mean == pytest.approx(np.mean(raw.m_durations) / 1000)
    assert metrics.get_throughput().mean == pytest.approx(1000 / metrics.get_tpot().mean)
    assert metrics.get_ipot().std == pytest.approx(np.std(raw.token_infer_durations) / 1000)
    assert metrics.get_sampling_duration().mean == pytest.approx(
        np.mean(raw.sampling_durations) / 1000
    )
    assert sum(raw.token_infer_durations) == pytest.approx(raw.inference_durations[0])
    assert 0 < metrics.get_ttft().mean <= metrics.get_generate_duration().mean


def test_the_throughput_of_a_single_token_is_0(speaks) -> None:
    metrics = speaks("hey").generate(["?"], max_new_tokens=1).perf_metrics
    assert tuple(metrics.get_throughput()) == (0, 0)
    assert tuple(metrics.get_tpot()) == (-1, -1)


def test_steps_that_did_not_run_have_duration_minus_1(speaks) -> None:
    metrics = speaks("hey").generate(np.array([[ASSISTANT]], np.int64)).perf_metrics
    assert tuple(metrics.get_tokenization_duration()) == (-1, -1)
    assert tuple(metrics.get_chat_template_duration()) == (-1, -1)


def test_metrics_without_measurements_are_minus_1_and_the_throughput_0() -> None:
    metrics = PerfMetrics()
    getters = [name for name in dir(metrics) if name.endswith("_duration")]
    assert len(getters) == 6
    for name in (*getters, "get_ttft", "get_tpot", "get_ipot"):
        assert tuple(getattr(metrics, name)()) == (-1, -1), name
    assert tuple(metrics.get_throughput()) == (0, 0)
    assert metrics.get_grammar_compile_time().as_tuple() == (-1, -1, -1, -1)
    assert metrics.get_grammar_compiler_init_times() == {}
    assert (MeanStdPair(), SummaryStats()) == (MeanStdPair(0, 0), SummaryStats(0, 0, 0, 0))


def test_added_metrics_concatenate_their_measurements(speaks) -> None:
    pipe = speaks("hey")
    one, two = (pipe.generate(["?"]).perf_metrics for _ in range(2))
    total = one + two
    assert total.get_num_generated_tokens() == 8
    assert total.get_load_time() == one.get_load_time()
    doubled = {name: 2 * count for name, count in lengths(one.raw_metrics).items()}
    kept = {"m_new_token_times": 4}
    assert lengths(total.raw_metrics) == doubled | kept, "times stay those of the first operand"
    assert one.get_num_generated_tokens() == 4, "the operands are unchanged"
    assert len(one.raw_metrics.m_durations) == 3, "the operands are unchanged"


def test_metrics_are_added_in_place(speaks) -> None:
    pipe = speaks("hey")
    total = first = pipe.generate(["?"]).perf_metrics
    total += pipe.generate(["?"]).perf_metrics
    assert total is first
    assert total.get_num_generated_tokens() == 8


def test_metrics_of_different_pipelines_are_not_added() -> None:
    with pytest.raises(GenAIUsageError, match="load times of 5 and 7 ms belong to different"):
        PerfMetrics(load_time=5) + PerfMetrics(load_time=7)


def test_metrics_are_added_to_metrics_alone() -> None:
    with pytest.raises(TypeError, match="metrics and 1 cannot be added"):
        PerfMetrics() + 1  # type: ignore[operator]
