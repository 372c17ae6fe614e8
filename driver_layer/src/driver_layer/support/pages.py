"""Advice to the system about pages of this process's memory.

Source: madvise(2) of Linux, the only system where the functions have an effect.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

_DONTNEED, _POPULATE_READ = 4, 22


def _system_call() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    found = ctypes.CDLL(None).madvise
    found.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return found


_madvise = _system_call()
CAN_POPULATE = _madvise is not None and _madvise(None, 0, _POPULATE_READ) == 0
"""True from Linux 5.14 on: the system can load pages, and refuses those that are not there."""


def discard_pages(data: npt.NDArray[np.uint8]) -> bool:
    """Return memory to the system; complete pages read as zeros when they are used again.

    Args:
        data: private memory of this process that begins at a page.

    Returns:
        Whether the system took the pages.
    """
    size = data.size // mmap.PAGESIZE * mmap.PAGESIZE
    return _madvise is not None and _madvise(data.ctypes.data, size, _DONTNEED) == 0
