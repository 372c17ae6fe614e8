"""Bell and Doorbell: waits for changes by other threads, with signal handlers that raise."""

from __future__ import annotations

import threading

import pytest
from tests.driver.interrupted import interruptions

from driver_layer.errors import DeviceFault
from driver_layer.npu.doorbell import Doorbell
from driver_layer.support.bell import Bell


def is_free(bell: Bell) -> bool:
    """Return whether another thread still gets the lock and wakes the waiters."""
    rung = threading.Event()

    def ring() -> None:
        with bell.lock:
            rung.set()
            bell.ring()

    threading.Thread(target=ring, daemon=True).start()
    return bell.wait(rung.is_set, 60)


def test_a_wait_ends_when_the_condition_is_true_or_at_the_timeout() -> None:
    bell = Bell()
    assert bell.wait(lambda: True, 0)
    assert not bell.wait(lambda: False, 0.001)
    assert is_free(bell)
    assert not bell._sleeping


def test_a_ring_wakes_all_waiters() -> None:
    bell, told, done = Bell(), list[bool](), list[int]()
    waiting = [
        threading.Thread(target=lambda: told.append(bell.wait(lambda: bool(done), 60)))
        for _ in range(8)
    ]
    for thread in waiting:
        thread.start()
    with bell.lock:
        done.append(1)
        bell.ring()
    for thread in waiting:
        thread.join(60)
    assert told == [True] * 8


def test_an_interrupted_wait_leaves_the_lock_free() -> None:
    bell, looks = Bell(), 0

    def is_second() -> bool:
        nonlocal looks
        looks += 1
        return looks % 2 == 0

    for _ in interruptions(lambda: bell.wait(is_second, 60), bell.lock):
        looks = 0
        assert is_free(bell)


def test_an_interrupted_ring_of_a_doorbell_leaves_it_usable() -> None:
    """The lock of a Condition was never released, as its ``__enter__`` is Python code."""
    doorbell, count = Doorbell(), 0

    def change() -> None:
        nonlocal count
        count += 1

    def others() -> None:
        doorbell.ring(change)
        doorbell.wait(lambda: count > 0)

    for _ in interruptions(lambda: doorbell.ring(change), doorbell._bell.lock):
        thread = threading.Thread(target=others, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()


def test_a_closed_doorbell_faults_unless_the_condition_is_true() -> None:
    doorbell = Doorbell()
    doorbell.close()
    assert doorbell.wait(lambda: True)
    with pytest.raises(DeviceFault, match="shut down"):
        doorbell.wait(lambda: False)
