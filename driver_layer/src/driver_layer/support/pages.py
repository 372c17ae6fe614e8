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

_DONTNEED, _POPULATE_READ, _POPULATE_WRITE = 4, 22, 23


def _system_call() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    found = ctypes.CDLL(None).madvise
    found.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return found


_madvise = _system_call()
_CAN_POPULATE = _madvise is not None and _madvise(None, 0, _POPULATE_READ) == 0
"""True from linux 5.14 on; on an older system callers are believed."""


def discard_pages(data: npt.NDArray[np.uint8]) -> bool:
    """Return memory to the system; complete pages read as zeros when they are used again.

    Args:
        data: private memory of this process that begins at a page.

    Returns:
        Whether the system took the pages.
    """
    size = data.size // mmap.PAGESIZE * mmap.PAGESIZE
    return _madvise is not None and _madvise(data.ctypes.data, size, _DONTNEED) == 0


def populate_pages(address: int, size: int, write: bool) -> bool:
    """Have the system load pages, as a driver does to pin them.

    Returns:
        False if some of the pages are not mapped, or may not be written.
    """
    begin = address // mmap.PAGESIZE * mmap.PAGESIZE
    advice = _POPULATE_WRITE if write else _POPULATE_READ
    return not _CAN_POPULATE or _madvise(begin, address + size - begin, advice) == 0
