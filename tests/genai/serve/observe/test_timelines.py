"""Spans of a step's engines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from genai_layer.serve.observe.view import MOST_SPANS, Timelines, by_engine, fewer


@dataclass(frozen=True)
class Task:
    engine: str
    name: str
    begin_ns: int
    end_ns: int


def tasks(*spans: tuple[int, int, str], engine: str = "DPU") -> list[Task]:
    return [Task(engine, name, begin, end) for begin, end, name in spans]


def test_tasks_that_overlap_are_one_span_with_the_longest_name() -> None:
    (span,) = by_engine(tasks((0, 10, "a"), (2, 30, "b"), (20, 25, "c")))["DPU"]
    assert (span.begin, span.end, span.name) == (0, 30, "b")


def test_tasks_that_follow_each_other_are_one_span_only_with_one_name() -> None:
    spans = by_engine(tasks((0, 10, "a"), (10, 20, "a"), (20, 30, "b"), (40, 50, "b")))["DPU"]
    found = [(span.begin, span.end, span.name) for span in spans]
    assert found == [(0, 20, "a"), (20, 30, "b"), (40, 50, "b")]


def test_programs_of_a_step_follow_each_other_and_are_computed_once() -> None:
    programs = {
        "generate": [*tasks((0, 3000, "mlp")), *tasks((1000, 4000, "load"), engine="DMA")],
        "lm_head": tasks((500, 1000, "head")),
    }
    computed: list[str] = []

    def timeline(program: str) -> Sequence[Task]:
        computed.append(program)
        return programs[program]

    timelines = Timelines()
    for _ in range(2):
        found = timelines.step(["generate", "lm_head"], timeline)
        assert found is not None
        assert found.device_us == 5.0
        dma, dpu = found.engines
        assert (dma.engine, dma.busy_us, dpu.engine, dpu.busy_us) == ("DMA", 3.0, "DPU", 3.5)
        assert [(one.begin_us, one.end_us) for one in dpu.spans] == [(0.0, 3.0), (4.5, 5.0)]
    found = timelines.step(["lm_head"], timeline)
    assert found is not None
    assert found.device_us == 1.0
    assert computed == ["generate", "lm_head"]


def test_a_step_with_a_program_without_timeline_has_none() -> None:
    timelines = Timelines()
    assert timelines.step(["a", "b"], lambda name: None if name == "b" else []) is None
    assert timelines.known(["a", "b"])


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1), st.integers(1, 20))
def test_spans_are_joined_at_the_smallest_gaps(lengths: list[tuple[int, int]], most: int) -> None:
    spans: list[tuple[int, int, str]] = []
    for number, (gap, length) in enumerate(lengths):
        begin = (spans[-1][1] if spans else 0) + gap
        spans.append((begin, begin + length, str(number)))
    before = by_engine(tasks(*spans))["DPU"]
    after = fewer(before, most)
    assert len(after) == min(len(before), most)
    assert (after[0].begin, after[-1].end) == (before[0].begin, before[-1].end)
    gaps = sorted(b.begin - a.end for a, b in itertools.pairwise(before))
    kept = sorted(b.begin - a.end for a, b in itertools.pairwise(after))
    assert kept == gaps[len(gaps) - len(kept) :]


def test_the_busy_time_does_not_depend_on_joined_spans() -> None:
    many = tasks(*((2000 * n, 2000 * n + 1000, "x") for n in range(MOST_SPANS + 50)))
    found = Timelines().step(["p"], lambda _: many)
    assert found is not None
    (engine,) = found.engines
    assert len(engine.spans) == MOST_SPANS
    assert engine.busy_us == MOST_SPANS + 50
