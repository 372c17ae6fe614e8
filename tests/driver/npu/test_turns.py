"""The engines' priority lock: the most urgent waiter is next, then the earliest."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.npu.turns import Turns


def until_waiting(turns: Turns, count: int) -> None:
    deadline = time.monotonic() + 60
    while turns.waiting < count:
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def order_of(turns: Turns, ranks: Sequence[int]) -> list[int]:
    """Return the order in which waiters that arrive one after the other get the lock."""
    served: list[int] = []

    def take(number: int) -> None:
        with turns.at(ranks[number]), turns:
            served.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(len(ranks))]
    with turns:
        for number, thread in enumerate(threads):
            thread.start()
            until_waiting(turns, number + 1)
    for thread in threads:
        thread.join()
    return served


@settings(max_examples=20, deadline=None)
@given(ranks=st.lists(st.integers(-1, 4), min_size=1, max_size=6))
def test_the_most_urgent_waiter_is_next_then_the_earliest(ranks: list[int]) -> None:
    turns = Turns()
    assert order_of(turns, ranks) == sorted(range(len(ranks)), key=lambda number: ranks[number])
    with turns:  # the lock is free again
        assert not turns.waiting


def test_only_one_thread_holds_the_lock() -> None:
    turns, inside, most = Turns(), [0], [0]

    def work() -> None:
        for _ in range(200):
            with turns:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_failing_holder_releases_the_lock() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="no"), turns:
        raise ValueError("no")
    assert order_of(turns, [0, 0]) == [0, 1]


def test_a_rank_ends_with_its_with_block() -> None:
    turns = Turns()
    with turns.at(5):
        pass
    assert order_of(turns, [0, 1]) == [0, 1]


INTERRUPTED = """
import signal, threading, time
from driver_layer.npu.turns import Turns

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever began us may ignore it
turns = Turns()

def interrupt():
    while not turns.waiting:
        time.sleep(0.001)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

with turns:
    threading.Thread(target=interrupt).start()
    try:
        turns.__enter__()
    except KeyboardInterrupt:
        print("interrupted", turns.waiting)
with turns:
    print("free")
"""


def test_an_interrupted_waiter_leaves_the_queue() -> None:
    """Run in a separate process, as interrupts arrive only in the main thread."""
    call = [sys.executable, "-c", INTERRUPTED]
    said = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.split("\n")[:2] == ["interrupted 0", "free"]
