"""Bytes of a blob, wherever they come from: mapped where that is possible, never copied."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

from driver_layer.mapped_file import MappedFile
from driver_layer.paths import looking_at
from driver_layer.regular_file import open_regular
from npuw_layer.api.tensor import Tensor
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import BlobError
from npuw_layer.storage.stream import in_one_piece, no_source, read_stream

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | Tensor | Array


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


def open_blob(source: Source) -> tuple[memoryview, Path | None]:
    """Give a blob's bytes, and the file that they are all of, if they are one.

    Args:
        source: a path; bytes, or an array or tensor of them; or a stream, which is read from where
            it stands to its end.

    Raises:
        BlobError: there is no such file, it cannot be read, or this is none of all that.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(os.fsdecode(source))
        with looking_at(path, BlobError), open_regular(path) as file:
            return map_file(file), path
    if isinstance(source, Tensor | np.ndarray):
        array = source.data if isinstance(source, Tensor) else source
        if array.dtype.hasobject:
            raise no_source(source)
        source = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    if isinstance(source, bytes | bytearray | memoryview):
        return in_one_piece(source), None
    if isinstance(source, io.BytesIO) and not source.closed:
        return source.getbuffer()[source.tell() :].toreadonly(), None
    # What unpacks a file may have its descriptor, but not its bytes.
    with contextlib.suppress(OSError, ValueError):  # a pipe or a socket, or it is closed
        if isinstance(source, io.FileIO) or isinstance(getattr(source, "raw", None), io.FileIO):
            return map_file(source)[source.tell() :], None
    return read_stream(source), None
