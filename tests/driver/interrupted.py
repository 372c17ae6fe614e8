"""An exception at every bytecode boundary of an act, as a signal's handler may raise it."""

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
    """Raised by a handler."""


def interruptions(
    act: Callable[[], object],
    *locks: AnyLock,
    inside: Collection[str] = (),
    as_signals: bool = False,
) -> Iterator[None]:
    """Run ``act`` again and again, interrupted one bytecode later each time, until it finishes.

    Yields after each interrupted run, for the caller to look at what is left.

    Args:
        act: what is interrupted.
        locks: what it holds meanwhile. They are released if ``act`` left them locked: CPython looks
            for signals after calls, and so never between a ``with`` block and the release behind
            it, where a trace function may raise all the same.
        inside: modules whose frames alone are interrupted; all if none are given.
        as_signals: whether it is interrupted only where CPython looks for signals, as an act must
            be that takes its lock again when it is interrupted.
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
    owned: Callable[[], bool] | None = getattr(lock, "_is_owned", None)  # of an RLock
    return lock.locked() if owned is None else owned()


class _Interruption:
    """Raises at the given boundary between bytecodes of the frames that an act enters."""

    def __init__(self, boundary: int, inside: Collection[str], as_signals: bool) -> None:
        self._left = boundary
        self._inside, self._as_signals = inside, as_signals
        self._before: dict[FrameType, str] = {}
        """The bytecode that each frame executed last."""

    def ends(self, act: Callable[[], object]) -> bool:
        """Run the act; tell whether it finished before the boundary."""
        before = sys.gettrace()
        gc.disable()  # callbacks of the collector, such as hypothesis's, are no part of the act
        sys.settrace(self._trace)
        try:
            act()
        except Interrupted:
            return False
        finally:
            sys.settrace(before)
            gc.enable()
            self._before.clear()  # frames keep alive what they know
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
"""The bytecodes behind which CPython does."""
