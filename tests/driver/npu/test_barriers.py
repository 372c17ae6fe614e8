"""Barriers, and the order of tasks that they impose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi.tasks import BARRIER_CONFIG
from driver_layer.errors import DeviceFault
from driver_layer.npu.barriers import BarrierFile, mask_bits
from driver_layer.npu.order import issue_order
from driver_layer.npu.program import Program
from driver_layer.testing.queues import QueuedTask, queue_of


def configs(*rows: tuple[int, int, int, int]) -> np.ndarray:
    """Return barriers from rows of next, producers, consumers, physical number."""
    table = np.zeros(len(rows), BARRIER_CONFIG)
    for index, row in enumerate(rows):
        table[index] = row
    return table


def task(wait: int = 0, post: int = 0, after: int = 0, slots: int = 1) -> QueuedTask:
    return QueuedTask(wait, post, after, slots)


def program(barriers: np.ndarray, **queues: list[QueuedTask]) -> Program:
    return Program(tuple(queue_of(name, tasks) for name, tasks in queues.items()), barriers, ())


def order(barriers: np.ndarray, physical: int = 4, **queues: list[QueuedTask]) -> list[str]:
    issued = issue_order(program(barriers, **queues), physical)
    names = list(queues)
    return [f"{names[queue]}{index}" for queue, index in issued.steps()]


@given(st.integers(0, 2**96 - 1))
def test_mask_bits_are_the_set_bits(mask: int) -> None:
    assert mask_bits(mask) == [bit for bit in range(96) if mask >> bit & 1]


def test_a_barrier_opens_when_all_producers_are_done() -> None:
    file = BarrierFile(configs((-1, 2, 1, 0)), 1)
    assert not file.open(1)
    file.finish(0, 1, 1)
    assert not file.open(1)
    file.finish(0, 1, 1)
    assert file.open(1)
    assert file.unfinished() == []


def test_a_consumed_barrier_is_replaced_by_the_next_of_its_number() -> None:
    file = BarrierFile(configs((1, 1, 1, 0), (-1, 1, 0, 0)), 1)
    assert file.programmed_below == 1
    file.finish(0, 1, 1)
    file.finish(1, 0, 1)
    assert file.programmed_below == 2
    assert not file.open(1), "the next barrier has its own producers"


def test_using_a_barrier_too_often_is_a_fault() -> None:
    file = BarrierFile(configs((-1, 1, 0, 0)), 1)
    file.finish(0, 1, 1)
    with pytest.raises(DeviceFault, match="barrier 0 is used more often"):
        file.finish(0, 1, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(-1, 1, 1, 4)], "uses physical barrier 4 of 4"),
        ([(0, 1, 1, 0)], "cannot be followed by 0"),
        ([(5, 1, 1, 0)], "cannot be followed by 5"),
        ([(1, 1, 1, 0), (-1, 1, 1, 1)], "cannot be followed by 1"),
    ],
)
def test_chains_are_checked(rows: list[tuple[int, int, int, int]], message: str) -> None:
    with pytest.raises(DeviceFault, match=message):
        BarrierFile(configs(*rows), 4)


def test_a_waiting_head_blocks_only_its_own_queue() -> None:
    barriers = configs((-1, 1, 1, 0))
    found = order(barriers, a=[task(wait=1), task()], b=[task(), task(post=1)])
    assert found == ["b0", "b1", "a0", "a1"]


def test_a_task_is_not_issued_before_its_barriers_are_programmed() -> None:
    barriers = configs((1, 1, 1, 0), (-1, 1, 0, 0))
    late = task(post=1, after=2)  # signals virtual barrier 1, which follows 0 in physical barrier 0
    assert order(barriers, a=[late], b=[task(post=1), task(wait=1)]) == ["b0", "b1", "a0"]


def test_a_deadlock_names_the_barrier_and_the_task() -> None:
    with pytest.raises(DeviceFault, match=r"a, task 0: deadlock: waits for barriers 0"):
        order(configs((-1, 1, 1, 0)), a=[task(wait=1, post=1)])


def test_a_barrier_that_is_never_completed_is_a_fault() -> None:
    with pytest.raises(DeviceFault, match=r"open barriers \[0\]"):
        order(configs((-1, 2, 0, 0)), a=[task(post=1)])


def test_a_task_counts_once_for_each_variant() -> None:
    assert order(configs((-1, 3, 1, 0)), a=[task(post=1, slots=3)], b=[task(wait=1)])
