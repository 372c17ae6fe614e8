"""Work in two processes: the results equal those of one process, also if the other one fails."""

from __future__ import annotations

import os
import threading

import pytest

from npuw_layer.plan.fork import map_forked

HERE = os.getpid()


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # ignore pytest's own threads


@pytest.mark.parametrize("count", range(6))
def test_results_are_in_order_and_half_of_them_from_the_other_process(count: int) -> None:
    found = map_forked(lambda item: (item * item, os.getpid()), range(count), lambda _: 1)
    assert [square for square, _ in found] == [item * item for item in range(count)]
    elsewhere = [pid for _, pid in found if pid != HERE]
    assert len(elsewhere) == (count // 2 if count > 1 else 0)


def test_expensive_items_are_shared_equally() -> None:
    found = map_forked(lambda item: (item, os.getpid()), [1, 1, 1, 5, 1, 1], lambda item: item)
    assert [item for item, _ in found] == [1, 1, 1, 5, 1, 1]
    assert len({pid for item, pid in found if item == 1}) == 1, "one process has no other item"


def test_items_that_the_other_process_does_not_finish_are_computed_here() -> None:
    def work(item: int) -> int:
        if item == 3 and os.getpid() != HERE:
            os._exit(9)
        return item

    assert map_forked(work, range(5), lambda _: 1) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("bad", [2, 3], ids=["here", "there"])
def test_errors_of_items_are_raised(bad: int) -> None:
    def work(item: int) -> int:
        if item == bad:
            raise KeyError(item)
        return item

    with pytest.raises(KeyError, match=str(bad)):
        map_forked(work, range(5), lambda _: 1)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_process_with_threads_is_not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert map_forked(lambda _: os.getpid(), range(4), lambda _: 1) == [HERE] * 4
