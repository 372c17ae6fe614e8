"""Alternate signal stack of the tests, unaffected by OpenVINO.

OpenVINO's CPU plugin sets an alternate signal stack in the thread that loads it, and unmaps it
with its core. If two cores end in the order in which they began, the second restores the stack of
the first, which is no longer mapped. The next signal then kills the process silently.
"""

from __future__ import annotations

import ctypes
import mmap
import sys


class _Stack(ctypes.Structure):
    """``stack_t`` of sigaltstack(2)."""

    _fields_ = (
        ("begin", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("size", ctypes.c_size_t),
    )


_MEMORY = mmap.mmap(-1, 1 << 16)
_STACK = _Stack(ctypes.addressof(ctypes.c_char.from_buffer(_MEMORY)), 0, len(_MEMORY))


def use_own_signal_stack() -> None:
    """Set this thread's signal stack to memory that stays mapped until exit; Linux only."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.sigaltstack(ctypes.byref(_STACK), None) == 0
