"""Release of memory, graphs and lists of the driver after the last reference to their owner.

The garbage collector finds owners in reference cycles. It may run anywhere, even while the driver
changes its tables under their lock. So releases during a collection wait until memory is next
allocated; all others run immediately.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue

Release = Callable[[], None]

_waiting: SimpleQueue[Release] = SimpleQueue()
"""A queue whose methods may be called during a collection."""

_collecting = False


def _note_phase(phase: str, _: dict[str, int]) -> None:
    global _collecting
    _collecting = phase == "start"


gc.callbacks.append(_note_phase)


def release_with(owner: object, release: Release) -> weakref.finalize[..., object]:
    """Call a function when an owner is freed, but not at the process's end, which frees everything.

    Returns:
        A finalizer; an explicit release detaches it.
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
    """Run the releases that were postponed by collections."""
    while True:
        try:
            release = _waiting.get_nowait()
        except Empty:
            return
        release()
