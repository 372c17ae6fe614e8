"""Waiting for what another thread changes, where signals' handlers raise."""

from __future__ import annotations

import threading

import pytest
from tests.driver.interrupted import interruptions

from driver_layer.errors import DeviceFault
from driver_layer.npu.doorbell import Doorbell
from driver_layer.support.bell import Bell


def is_free(bell: Bell) -> bool:
    """Check that another thread still gets the lock and wakes the waiters."""
    rung = threading.Event()

    def ring() -> None:
        with bell.lock:
            rung.set()
            bell.ring()

    threading.Thread(target=ring, daemon=True).start()
    return bell.wait(rung.is_set, 60)


def test_it_waits_until_something_is_true() -> None:
    bell = Bell()
    assert bell.wait(lambda: True, 0)
    assert not bell.wait(lambda: False, 0.001)
    assert is_free(bell)
    assert not bell._sleeping


def test_all_who_wait_are_woken() -> None:
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


def test_an_interrupted_wait_keeps_no_lock() -> None:
    bell, looks = Bell(), 0

    def is_second() -> bool:
        nonlocal looks
        looks += 1
        return looks % 2 == 0

    for _ in interruptions(lambda: bell.wait(is_second, 60), bell.lock):
        looks = 0
        assert is_free(bell)


def test_an_interrupted_ring_of_a_doorbell_hangs_nobody() -> None:
    """Of a Condition the lock was lost, as its ``__enter__`` is Python code."""
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


def test_a_closed_doorbell_ends_waits_for_what_is_not_true() -> None:
    doorbell = Doorbell()
    doorbell.close()
    assert doorbell.wait(lambda: True)
    with pytest.raises(DeviceFault, match="shut down"):
        doorbell.wait(lambda: False)
