"""Bytes of a blob, wherever they come from: mapped where that is possible, never copied."""

from __future__ import annotations

import io
import mmap
import os
from pathlib import Path
from typing import BinaryIO

from npuw_layer.errors import BlobError

Source = str | Path | bytes | bytearray | memoryview | BinaryIO


def map_file(file: BinaryIO) -> memoryview:
    """Map an open file, which may then be closed; an empty one has no bytes.

    Raises:
        OSError: it cannot be mapped.
    """
    if not os.fstat(file.fileno()).st_size:
        return memoryview(b"")
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def drop_pages(program: bytes | memoryview) -> None:
    """Take a mapped program that was loaded out of memory; what is looked at again comes back."""
    whole = program.obj if isinstance(program, memoryview) else None
    if isinstance(whole, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        whole.madvise(mmap.MADV_DONTNEED)


def open_blob(source: Source) -> tuple[memoryview, Path | None]:
    """Give a blob's bytes, and the file that they are all of, if they are one.

    Args:
        source: a path; bytes; or a stream, which is read from where it stands to its end.

    Raises:
        BlobError: there is no such file, or it cannot be read.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        try:
            with path.open("rb") as file:
                return map_file(file), path
        except OSError as error:
            raise BlobError(f"{path}: {error.strerror}") from None
    if isinstance(source, bytes | bytearray | memoryview):
        return memoryview(source).toreadonly().cast("B"), None
    if isinstance(source, io.BytesIO):
        return source.getbuffer()[source.tell() :].toreadonly(), None
    try:
        return map_file(source)[source.tell() :], None
    except (OSError, ValueError):  # a pipe, a socket, or no file at all
        return memoryview(source.read()), None
