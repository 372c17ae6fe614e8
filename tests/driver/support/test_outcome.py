"""Waiting for other threads, where signals' handlers raise."""

from __future__ import annotations

import random
import threading
import time
from functools import partial

from tests.torn import alarm

from driver_layer.npu.stream import Stream
from driver_layer.support.outcome import Outcome


def test_it_tells_whether_work_has_ended_and_what_it_raised() -> None:
    fine, broken, never = Outcome(), Outcome(), Outcome()
    fine.run(lambda: 1)
    broken.run(lambda: 1 / 0)
    assert (fine.wait(), broken.wait(), never.wait(0.001)) == (True, True, False)
    assert fine.error is None
    assert isinstance(broken.error, ZeroDivisionError)
    assert not never.ended


def test_all_who_wait_are_woken() -> None:
    outcome, told = Outcome(), list[bool]()
    waiting = [threading.Thread(target=lambda: told.append(outcome.wait(60))) for _ in range(8)]
    for thread in waiting:
        thread.start()
    outcome.run(lambda: None)
    for thread in waiting:
        thread.join(60)
    assert told == [True] * 8


def test_who_is_torn_away_takes_nothing_along() -> None:
    """Of a Condition it was the lock, which the worker needed: Ctrl-C ended in waiting for ever."""
    stream, draw, count = Stream("test"), random.Random(1), 0
    stream.submit(lambda: None).wait()
    work = partial(time.sleep, 1e-5)
    ended = time.monotonic() + 1
    with alarm(KeyboardInterrupt) as rings:
        while time.monotonic() < ended:
            count += rings.ends(lambda: stream.submit(work).wait(), draw.uniform(1e-6, 3e-4))
            assert stream.wait(30)
    assert count > 50
    stream.join()
