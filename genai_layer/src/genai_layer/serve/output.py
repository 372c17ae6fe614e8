"""Output of the server: lines and log records, which a thread of its own writes.

A reader that has gone, or that reads no more, loses lines; it never stops the event loop.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import queue
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Collection, Generator
from typing import TextIO

_MOST = 1000
"""Lines that may wait for a slow reader; further ones are lost."""
_PATIENCE = 1.0
"""Seconds in which the last lines are written."""
_INTERVAL = 60.0
"""Seconds between two records of one kind."""


class Output:
    """Writer of lines to stdout and stderr, and, within ``logging``, of log records."""

    def __init__(self) -> None:
        self._lines: queue.Queue[tuple[TextIO, str] | None] = queue.Queue(_MOST)
        self._thread = threading.Thread(target=self._write, name="npu-serve output", daemon=True)
        self._thread.start()

    def show(self, line: str) -> None:
        """Write a line to stdout."""
        self._put(sys.stdout, line)

    def warn(self, line: str) -> None:
        """Write a line to stderr."""
        self._put(sys.stderr, line)

    def close(self) -> None:
        """Write the lines that wait, if their reader takes them."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=_PATIENCE)
        self._thread.join(_PATIENCE)

    def _put(self, stream: TextIO | None, line: str) -> None:
        if stream is not None:  # a process may begin with closed files, which Python has as None
            with contextlib.suppress(queue.Full):
                self._lines.put_nowait((stream, line))

    def _write(self) -> None:
        while (one := self._lines.get()) is not None:
            stream, line = one
            with contextlib.suppress(OSError, ValueError):  # no reader, no room, or closed
                stream.write(f"{line}\n")
                stream.flush()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(ValueError):  # closed
                _let_go(stream)


def _let_go(stream: TextIO) -> None:
    """Drop what a stream cannot write; the interpreter's end would try again, and exit with 120."""
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def logging_to(output: Output, *flooded: str) -> Generator[None]:
    """Write log records as lines of stderr; of those with a stack, one of a place a minute.

    Args:
        output: writes them.
        flooded: loggers whose records clients cause; one of a kind a minute is written.
    """
    root, handler = logging.getLogger(), _Handler(output)
    handler.addFilter(Throttle(flooded))
    if root.handlers:
        handler.setFormatter(root.handlers[0].formatter)
    else:
        handler.setLevel(logging.WARNING)  # as logging does without a handler
    kept, root.handlers[:] = root.handlers[:], [handler]
    try:
        yield
    finally:
        root.handlers[:] = kept


class _Handler(logging.Handler):
    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as a line."""
        self._output.warn(self.format(record))


_NO_HANDLE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Reasons for which a connection cannot be accepted."""


class Throttle(logging.Filter):
    """Filter that passes one record of a kind a minute, with the number of those left out.

    A record with a stack is of the kind of its place, the code that raised the error; others are of
    the kind of their text without its values.

    Args:
        flooded: loggers whose records without a stack are left out, too.
    """

    def __init__(self, flooded: Collection[str]) -> None:
        super().__init__()
        self._flooded = flooded
        self._passed: dict[object, float] = {}
        """Times of the last records."""
        self._left_out = Counter[object]()
        """Records since then."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written; that of a refused connection without its stack."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, OSError) and error.errno in _NO_HANDLE:
            record.msg = f"no connection is accepted: {error.strerror}; raise ulimit -n"
            record.args, record.exc_info = (), None
        elif error is None and record.name not in self._flooded:
            return True
        kind, now = _kind(record), time.monotonic()
        if now - self._passed.get(kind, -_INTERVAL) < _INTERVAL:
            self._left_out[kind] += 1
            return False
        self._passed[kind] = now
        count = self._left_out.pop(kind, 0)
        if count and record.exc_info:
            record.msg, record.args = f"{record.getMessage()} (and {count} times before)", ()
        return True


def _kind(record: logging.LogRecord) -> object:
    """Return the kind of a record; each logger that reports an error has its own."""
    stack = record.exc_info[2] if record.exc_info else None
    if stack is None:
        return str(record.msg).partition("\n")[0]
    frame, line = list(traceback.walk_tb(stack))[-1]
    return record.name, frame.f_code.co_filename, line
