"""Callers' streams, with their failures as npuw's errors."""

from __future__ import annotations

import io
import reprlib
from typing import BinaryIO, cast

from npuw_layer.errors import BlobError, NpuwFault, NpuwUsageError

_NAMES = reprlib.Repr()
"""Short representation of a caller's object, without all its content."""
_NAMES.maxother = 120


class OutputStream:
    """A stream to write to.

    Args:
        stream: the caller's stream.

    Raises:
        NpuwUsageError: the object is not a stream, or is a text stream.
    """

    def __init__(self, stream: object) -> None:
        if isinstance(stream, io.TextIOBase) or not callable(getattr(stream, "write", None)):
            raise NpuwUsageError(
                f"a model cannot be exported to {_NAMES.repr(stream)}; pass a path or a stream of "
                "bytes, or None to get its bytes"
            )
        self._stream = cast(BinaryIO, stream)

    def write(self, data: bytes | memoryview, /) -> int:
        """Write bytes.

        Raises:
            NpuwUsageError: the stream is closed, read-only, or does not accept bytes.
            NpuwFault: writing fails, e.g. because the disk is full.
        """
        try:
            return self._stream.write(data)
        except (TypeError, ValueError) as error:  # includes io.UnsupportedOperation
            given = _NAMES.repr(self._stream)
            raise NpuwUsageError(f"a model cannot be exported to {given}: {error}") from error
        except OSError as error:
            given = _NAMES.repr(self._stream)
            raise NpuwFault(f"{given}: {error.strerror or error}") from error


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
        raise BlobError(f"{_NAMES.repr(stream)} cannot be read: {error}") from error
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
        f"{_NAMES.repr(given)} is not a blob; pass a path, a stream of bytes, or bytes, also as an "
        "array or a tensor"
    )
