"""Bytes of a blob, wherever they come from: mapped where that is possible, never copied."""

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
