"""A stack for signals that stays mapped while OpenVINO's cores come and go.

OpenVINO's CPU plugin sets a stack of its own in the thread that loads it, and unmaps it with its
core. When two cores end in the order in which they began, the second sets back the stack of the
first, which is gone: the next signal ends the process without a word.
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
    """Handle signals of this thread on a stack that is never unmapped; only Linux needs it."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.sigaltstack(ctypes.byref(_STACK), None) == 0
