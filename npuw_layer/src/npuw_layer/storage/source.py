"""Bytes of a blob from any source: mapped where possible, never copied."""

from __future__ import annotations

import contextlib
import io
import os
import reprlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from driver_layer.support.files import looking_at, open_regular
from npuw_layer.backends.mapped import map_file
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import BlobError

SHORT = reprlib.Repr()
"""Short representation of a caller's object, without all its content."""
SHORT.maxother = 120

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | Tensor | Array


def open_blob(source: Source) -> tuple[memoryview, Path | None]:
    """Return a blob's bytes, and the path of the file with exactly these bytes, or None.

    Args:
        source: a path; bytes, or an array or tensor of them; or a stream, which is read from its
            position to its end.

    Raises:
        BlobError: the file does not exist or cannot be read, or the source is of another kind.
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
    # A decompressing stream may have the file's descriptor, but other bytes.
    with contextlib.suppress(OSError, ValueError):  # a pipe, a socket, or a closed file
        if isinstance(source, io.FileIO) or isinstance(getattr(source, "raw", None), io.FileIO):
            return map_file(source)[source.tell() :], None
    return read_stream(source), None


def read_stream(stream: object) -> memoryview:
    """Read a stream from its position to its end.

    Raises:
        BlobError: the object is not a stream, cannot be read, or returns no bytes.
    """
    read = getattr(stream, "read", None)
    if not callable(read):
        raise no_source(stream)
    try:
        content = read()
    except (OSError, EOFError, TypeError, ValueError) as error:
        raise BlobError(f"{SHORT.repr(stream)} cannot be read: {error}") from error
    if not isinstance(content, bytes | bytearray | memoryview):
        raise no_source(stream)
    return in_one_piece(cast(memoryview, content))


def in_one_piece(content: bytes | bytearray | memoryview) -> memoryview:
    """View bytes as one read-only buffer.

    Raises:
        BlobError: the view has gaps, or was released.
    """
    try:
        return memoryview(content).toreadonly().cast("B")
    except (TypeError, ValueError) as error:
        raise BlobError(f"a blob must be contiguous bytes: {error}; pass bytes(…) of it") from None


def no_source(given: object) -> BlobError:
    """Return the error for a source that is not a blob."""
    return BlobError(
        f"{SHORT.repr(given)} is not a blob; pass a path, a stream of bytes, or bytes, also as an "
        "array or a tensor"
    )
