"""Gives memory, graphs and lists back to the driver when nobody holds their owner any more.

An owner that is part of a cycle is found by the garbage collector, which may run anywhere: also
where the driver is just about to change its tables, and holds their lock. So what dies in a
collection waits for the next time that memory is asked for; anything else goes back at once.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue

Release = Callable[[], None]

_waiting: SimpleQueue[Release] = SimpleQueue()
"""Made to be used by what may run anywhere."""

_collecting = False


def _note_phase(phase: str, _: dict[str, int]) -> None:
    global _collecting
    _collecting = phase == "start"


gc.callbacks.append(_note_phase)


def release_with(owner: object, release: Release) -> weakref.finalize[..., object]:
    """Call something when an owner is gone; not at the end of the process, which frees all.

    Returns:
        What is detached by whoever has called it before.
    """
    finalizer = weakref.finalize(owner, _release, release)
    finalizer.atexit = False
    return finalizer


def _release(release: Release) -> None:
    if _collecting:
        _waiting.put(release)
    else:
        release()


def release_waiting() -> None:
    """Give back what died in collections."""
    while True:
        try:
            release = _waiting.get_nowait()
        except Empty:
            return
        release()
