"""Exceptions at every bytecode boundary of a call, as a signal handler may raise them."""

from __future__ import annotations

import dis
import gc
import re
import sys
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import Any

AnyLock = Any
"""A Lock or an RLock, which are functions to type checkers."""


class Interrupted(BaseException):
    """Exception of the simulated signal handler."""


def interruptions(
    act: Callable[[], object],
    *locks: AnyLock,
    inside: Collection[str] = (),
    as_signals: bool = False,
) -> Iterator[None]:
    """Run ``act`` repeatedly, interrupted one bytecode later each time, until it finishes.

    Yields after each interrupted run, for the caller to check the state.

    Args:
        act: the call to interrupt.
        locks: locks that ``act`` acquires. They are released if ``act`` left them locked: CPython
            checks for signals after calls, thus never between a ``with`` block and the following
            release, where the trace function may raise.
        inside: modules whose frames are interrupted; all modules if empty.
        as_signals: True interrupts only where CPython checks for signals, as needed for an act that
            acquires its lock again after an interrupt.
    """
    boundary = 0
    while not _Interruption(boundary, inside, as_signals).ends(act):
        for lock in locks:
            if _is_held(lock):
                lock.release()
        yield
        boundary += 1
    assert boundary > 0


def _is_held(lock: AnyLock) -> bool:
    owned: Callable[[], bool] | None = getattr(lock, "_is_owned", None)  # an RLock has it
    return lock.locked() if owned is None else owned()


class _Interruption:
    """Trace function that raises at a given bytecode boundary in the frames of a call."""

    def __init__(self, boundary: int, inside: Collection[str], as_signals: bool) -> None:
        self._left = boundary
        self._inside, self._as_signals = inside, as_signals
        self._before: dict[FrameType, str] = {}
        """Latest bytecode of each frame."""

    def ends(self, act: Callable[[], object]) -> bool:
        """Run the call; return whether it finished before the boundary."""
        before = sys.gettrace()
        gc.disable()  # callbacks of the collector, such as hypothesis's, do not belong to the call
        sys.settrace(self._trace)
        try:
            act()
        except Interrupted:
            return False
        finally:
            sys.settrace(before)
            gc.enable()
            self._before.clear()  # frames keep their objects alive
        return True

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self._inside and frame.f_globals["__name__"] not in self._inside:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = self._before.get(frame, "")
            self._before[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if not self._as_signals or _LOOKS_FOR_SIGNALS.search(before):
                self._left -= 1
                if self._left < 0:
                    sys.settrace(None)
                    raise Interrupted
        elif event == "return":
            self._before.pop(frame, None)
        return self._trace


_LOOKS_FOR_SIGNALS = re.compile(r"^(CALL|RESUME|JUMP_BACKWARD$|POP_JUMP_BACKWARD)")
"""Bytecodes after which CPython checks for signals."""
