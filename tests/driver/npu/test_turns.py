"""Who uses the engines next: the most urgent of those who wait, then who came first."""

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
    """In which order those get their turns who come one after the other while somebody has it."""
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
def test_the_most_urgent_come_first_then_the_earliest(ranks: list[int]) -> None:
    turns = Turns()
    assert order_of(turns, ranks) == sorted(range(len(ranks)), key=lambda number: ranks[number])
    with turns:  # it is free again
        assert not turns.waiting


def test_there_is_one_at_a_time() -> None:
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


def test_what_fails_passes_its_turn_on() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="no"), turns:
        raise ValueError("no")
    assert order_of(turns, [0, 0]) == [0, 1]


def test_urgency_ends_with_what_it_was_for() -> None:
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


def test_who_is_interrupted_while_waiting_waits_no_more() -> None:
    """In a process of its own: interrupts come to the main thread alone."""
    call = [sys.executable, "-c", INTERRUPTED]
    said = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.split("\n")[:2] == ["interrupted 0", "free"]
