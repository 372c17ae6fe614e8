"""Memory of the host that a device can be given: it begins at a page and is whole pages."""

from __future__ import annotations

import mmap

import numpy as np
import numpy.typing as npt

PAGE_BYTES = 4096
"""What the NPU maps at a time."""


def whole_pages(nbytes: int) -> int:
    """Bytes, rounded up to pages; at least one page."""
    return max(1, -(-nbytes // PAGE_BYTES)) * PAGE_BYTES


def page_aligned_bytes(nbytes: int) -> npt.NDArray[np.uint8]:
    """Take zeroed pages of the host with room for ``nbytes``: what CPU_VA takes as MEM_HANDLE."""
    return np.frombuffer(mmap.mmap(-1, whole_pages(nbytes)), np.uint8)
