"""Bytes of a blob from any source: mapped where possible, never copied."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

from driver_layer.support.files import looking_at, open_regular
from npuw_layer.backends.mapped import map_file
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import BlobError
from npuw_layer.storage.stream import in_one_piece, no_source, read_stream

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
