"""Outcome: waits for the end of other threads' work, with signal handlers that raise."""

from __future__ import annotations

import random
import threading
import time
from functools import partial

from tests.torn import alarm

from driver_layer.npu.stream import Stream
from driver_layer.support.outcome import Outcome


def test_an_outcome_has_the_end_and_the_error_of_work() -> None:
    fine, broken, never = Outcome(), Outcome(), Outcome()
    fine.run(lambda: 1)
    broken.run(lambda: 1 / 0)
    assert (fine.wait(), broken.wait(), never.wait(0.001)) == (True, True, False)
    assert fine.error is None
    assert isinstance(broken.error, ZeroDivisionError)
    assert not never.ended


def test_the_end_of_work_wakes_all_waiters() -> None:
    outcome, told = Outcome(), list[bool]()
    waiting = [threading.Thread(target=lambda: told.append(outcome.wait(60))) for _ in range(8)]
    for thread in waiting:
        thread.start()
    outcome.run(lambda: None)
    for thread in waiting:
        thread.join(60)
    assert told == [True] * 8


def test_an_interrupted_waiter_does_not_block_the_worker() -> None:
    """An interrupted waiter could keep the lock of a Condition: after Ctrl-C the worker hung."""
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
