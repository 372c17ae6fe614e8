"""Listeners receive the programs that run meanwhile, with their labels."""

from __future__ import annotations

import threading

import pytest

from npuw_layer.backends.recording import (
    LayerTime,
    ProgramRun,
    is_recording,
    note,
    recording,
    within,
)


def layer(name: str = "a", start: int = 0, duration: int = 5) -> LayerTime:
    return LayerTime(name, "MatMul", True, start, duration, duration, 0, 0)


def test_runs_before_and_after_a_recording_are_not_received() -> None:
    note([layer("before")])
    assert not is_recording()
    with recording() as runs:
        assert is_recording()
        note([layer("meanwhile")])
    note([layer("after")])
    assert [each.name for run in runs for each in run.layers] == ["meanwhile"]


def test_labels_begin_with_the_outermost() -> None:
    with recording() as runs, within("prefill"):
        with within("subgraph0"):
            note([layer()])
        note([layer()])
    assert [run.labels for run in runs] == [("prefill", "subgraph0"), ("prefill",)]


def test_an_outer_listener_receives_the_runs_of_inner_ones_in_order() -> None:
    with recording() as outer:
        note([layer("1")])
        with within("durations"), recording() as inner:
            note([layer("2")])
        note([layer("3")])
    assert [run.layers[0].name for run in inner] == ["2"]
    assert [run.layers[0].name for run in outer] == ["1", "2", "3"]
    assert outer[1].labels == ("durations",)


def test_runs_before_a_failure_are_received() -> None:
    heard: list[list[ProgramRun]] = []

    def fail() -> None:
        with recording() as outer, recording() as inner:
            heard.extend((outer, inner))
            note([layer()])
            raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        fail()
    assert [len(runs) for runs in heard] == [1, 1]
    assert not is_recording()


def test_listeners_of_threads_are_independent() -> None:
    with recording() as runs:
        other = threading.Thread(target=lambda: note([layer()]))
        other.start()
        other.join()
    assert runs == []


def test_a_run_lasts_until_its_last_layer_ends() -> None:
    with recording() as runs:
        note([layer(start=0, duration=90), layer(start=20, duration=60)])
        note([])
    assert [run.total_ns for run in runs] == [90, 0]
