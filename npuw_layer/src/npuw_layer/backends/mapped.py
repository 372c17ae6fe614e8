"""Mapped files, and advice to the system about reads of them."""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import BinaryIO

from driver_layer.support.mapped_file import MappedFile


def map_file(file: BinaryIO) -> memoryview:
    """Map an open file, which may then be closed; an empty file has no bytes.

    Until ``drop_pages``, the system reads only accessed pages. By default it reads ahead up to
    megabytes, which would be the weights.

    Raises:
        OSError: the file cannot be mapped.
    """
    if not os.fstat(file.fileno()).st_size:
        return memoryview(b"")
    whole = MappedFile.of(file)
    _advise(whole, "MADV_RANDOM")
    return memoryview(whole)


def read_ahead(content: memoryview, offset: int, size: int) -> None:
    """Read bytes of a mapped file in one request, not page by page.

    Args:
        content: an unsliced result of ``map_file``; anything else is ignored.
        offset: start of the bytes.
        size: number of bytes.
    """
    whole = content.obj
    if isinstance(whole, mmap.mmap) and len(content) == len(whole) and size:
        begin = offset - offset % mmap.PAGESIZE
        _advise(whole, "MADV_WILLNEED", begin, offset + size - begin)


def drop_pages(program: bytes | memoryview) -> None:
    """Drop the pages of a loaded mapped program from memory; later accesses read them again.

    The runs of the program read it from end to end.
    """
    whole = program.obj if isinstance(program, memoryview) else None
    if isinstance(whole, mmap.mmap):
        _advise(whole, "MADV_NORMAL")
        _advise(whole, "MADV_DONTNEED")


def _advise(whole: mmap.mmap, advice: str, *span: int) -> None:
    """Advise the system on the use of a file, if it supports the advice."""
    option: int | None = getattr(mmap, advice, None)
    if option is not None:
        with contextlib.suppress(OSError):
            whole.madvise(option, *span)
