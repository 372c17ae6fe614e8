"""A timer that acts once after a context was idle for a time.

Source: docs/reference/level_zero.md#context-and-driver-extensions.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress

from driver_layer.abi.metadata import ArchKind
from driver_layer.npu.memory import AddressSpace
from driver_layer.ze.driver import ze_device_handle_t

IDLE_SECONDS = 30.0
"""Time of the public driver, after which an idle context releases memory."""


class _State:
    """State that a timer and its thread share; the thread holds no reference to the timer.

    Waking is the release of a lock: a signal handler that raises can leave no half-taken lock.
    """

    def __init__(self) -> None:
        self.deadline = math.inf
        """Time of ``time.monotonic`` at which the thread acts; infinite if there is no work."""
        self.ended = False
        self._sleeping = threading.Lock()
        self._sleeping.acquire()

    def wake(self) -> None:
        """Make the thread look at the deadline."""
        with suppress(RuntimeError):  # the thread is already awake
            self._sleeping.release()

    def end(self) -> None:
        """End the thread."""
        self.ended = True
        self.wake()

    def serve(self, act: Callable[[], object]) -> None:
        """Act at each deadline."""
        while not self.ended:
            left = self.deadline - time.monotonic()
            if left <= 0:
                self.deadline = math.inf
                act()
            else:
                self._sleeping.acquire(timeout=min(left, threading.TIMEOUT_MAX))


class IdleTimer:
    """Calls a function once the context has been idle for a time; work postpones the call.

    The thread is started by the first work, and ends with the timer. A forked process has none.

    Args:
        act: the function, called in the timer's thread; it must not refer to the timer.
        enabled: False never calls the function.
    """

    def __init__(self, act: Callable[[], object], enabled: bool) -> None:
        self.seconds = IDLE_SECONDS
        """Time of idleness, which counts from the next end of work on."""
        self._act = act
        self._enabled = enabled
        self._state: _State | None = None

    def work_ended(self) -> None:
        """Begin to wait anew, as the context's work has ended for now."""
        if not self._enabled:
            return
        state = self._state or self._begin()
        deadline = time.monotonic() + self.seconds
        sooner = deadline < state.deadline
        state.deadline = deadline
        if sooner:
            state.wake()

    def enable(self) -> None:
        """Call the function from the next end of work on."""
        self._enabled = True

    def disable(self) -> None:
        """Do not call the function any more."""
        self._enabled = False
        state, self._state = self._state, None
        if state is not None:
            state.end()

    def _begin(self) -> _State:
        state = self._state = _State()
        weakref.finalize(self, state.end).atexit = False
        serve = threading.Thread(
            target=state.serve, args=(self._act,), name="npu-idle", daemon=True
        )
        serve.start()
        return state


def scratch_timer(device: ze_device_handle_t, space: AddressSpace) -> IdleTimer:
    """Return the timer that releases the scratch memory of a context.

    It is enabled unless the device is of the first generation, as in the public driver.
    """
    npu, found = device.npu, weakref.ref(space)

    def release() -> None:
        alive = found()
        if alive is not None:
            npu.release_scratch(alive)

    return IdleTimer(release, enabled=device.platform.arch >= ArchKind.VPUX40XX)
