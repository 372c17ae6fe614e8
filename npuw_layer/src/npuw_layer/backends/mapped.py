"""Mapped files, and advice to the system about how they are read."""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import BinaryIO

from driver_layer.support.mapped_file import MappedFile


def map_file(file: BinaryIO) -> memoryview:
    """Map an open file, which may then be closed; an empty one has no bytes.

    Until ``drop_pages`` the system reads just what is looked at. Usually it reads on, up to
    megabytes, which would be the weights.

    Raises:
        OSError: it cannot be mapped.
    """
    if not os.fstat(file.fileno()).st_size:
        return memoryview(b"")
    whole = MappedFile.of(file)
    _advise(whole, "MADV_RANDOM")
    return memoryview(whole)


def read_ahead(content: memoryview, offset: int, size: int) -> None:
    """Let the system read bytes of a mapped file at once, not page by page.

    Args:
        content: all of what ``map_file`` gave; of anything else nothing is to be read.
        offset: where they begin.
        size: how many there are.
    """
    whole = content.obj
    if isinstance(whole, mmap.mmap) and len(content) == len(whole) and size:
        begin = offset - offset % mmap.PAGESIZE
        _advise(whole, "MADV_WILLNEED", begin, offset + size - begin)


def drop_pages(program: bytes | memoryview) -> None:
    """Take a mapped program that was loaded out of memory; what is looked at again comes back.

    It will be looked at from end to end, when it runs.
    """
    whole = program.obj if isinstance(program, memoryview) else None
    if isinstance(whole, mmap.mmap):
        _advise(whole, "MADV_NORMAL")
        _advise(whole, "MADV_DONTNEED")


def _advise(whole: mmap.mmap, advice: str, *span: int) -> None:
    """Tell the system how a file will be used, if it wants to know."""
    option: int | None = getattr(mmap, advice, None)
    if option is not None:
        with contextlib.suppress(OSError):
            whole.madvise(option, *span)
