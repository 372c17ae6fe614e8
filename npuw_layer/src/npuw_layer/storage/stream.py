"""Streams that callers give: what they cannot do is told in an error of ours."""

from __future__ import annotations

import io
import reprlib
from typing import BinaryIO, cast

from npuw_layer.errors import BlobError, NpuwFault, NpuwUsageError

_NAMES = reprlib.Repr()
"""Says what was given, but not all that is in it."""
_NAMES.maxother = 120


class Target:
    """A stream that is written to.

    Args:
        stream: the caller's.

    Raises:
        NpuwUsageError: it is none, or one of text.
    """

    def __init__(self, stream: object) -> None:
        if isinstance(stream, io.TextIOBase) or not callable(getattr(stream, "write", None)):
            raise NpuwUsageError(
                "a model is exported to a path or a stream of bytes, not to "
                f"{_NAMES.repr(stream)}; None gives its bytes"
            )
        self._stream = cast(BinaryIO, stream)

    def write(self, data: bytes | memoryview, /) -> int:
        """Write bytes.

        Raises:
            NpuwUsageError: the stream is closed, for reading alone, or takes no bytes.
            NpuwFault: the disk is full, or the like.
        """
        try:
            return self._stream.write(data)
        except (TypeError, ValueError) as error:  # of these is io.UnsupportedOperation, too
            given = _NAMES.repr(self._stream)
            raise NpuwUsageError(f"a model cannot be exported to {given}: {error}") from error
        except OSError as error:
            given = _NAMES.repr(self._stream)
            raise NpuwFault(f"{given}: {error.strerror or error}") from error


def read_stream(stream: object) -> memoryview:
    """Read a stream from where it stands to its end.

    Raises:
        BlobError: it is none, or it cannot be read, or gives no bytes.
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
    """See bytes as such, read-only.

    Raises:
        BlobError: they are a view that leaves some out, or was released.
    """
    try:
        return memoryview(content).toreadonly().cast("B")
    except (TypeError, ValueError) as error:
        raise BlobError(f"a blob is bytes in one piece: {error}; give bytes(…) of it") from None


def no_source(given: object) -> BlobError:
    """Make the error of what is no blob."""
    return BlobError(
        "a blob is a path, a stream of bytes, or bytes, also as an array or a tensor, not "
        f"{_NAMES.repr(given)}"
    )
