"""An exception at every bytecode boundary of an act, as a signal's handler may raise it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from threading import Lock
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """Raised by a handler."""


def interruptions(
    act: Callable[[], object], *locks: Lock, inside: Collection[str] = ()
) -> Iterator[None]:
    """Run ``act`` again and again, interrupted one bytecode later each time, until it finishes.

    Yields after each interrupted run, for the caller to look at what is left.

    Args:
        act: what is interrupted.
        locks: what it holds meanwhile. They are released if ``act`` left them locked: CPython looks
            for signals after calls, and so never between a ``with`` block and the release behind
            it, where a trace function may raise all the same.
        inside: modules whose frames alone are interrupted; all if none are given.
    """
    boundary = 0
    while not _interrupted(act, boundary, inside):
        for lock in locks:
            if lock.locked():
                lock.release()
        yield
        boundary += 1
    assert boundary > 0


def _interrupted(act: Callable[[], object], boundary: int, inside: Collection[str]) -> bool:
    """Raise at the given bytecode of the frames that ``act`` enters; say if it finished before."""
    passed = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal passed
        if inside and frame.f_globals["__name__"] not in inside:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            passed += 1
            if passed > boundary:
                sys.settrace(None)
                raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except Interrupted:
        return False
    finally:
        sys.settrace(before)
    return True
