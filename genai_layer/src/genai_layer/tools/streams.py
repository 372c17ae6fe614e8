"""The standard streams of a command, whatever whoever starts it made of them.

They may be closed, full, read by nobody, or without the characters that are written: none of that
ends in a traceback. The layers below have the same for their commands; nothing of them is imported
here.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Callable, Generator
from typing import Any, TextIO, cast


def run_tool(name: str, run: Callable[[], int]) -> int:
    """Run a command; give its exit code.

    That is 2 if what it printed could not be written, 130 if it was interrupted, and 0 if its
    reader, such as head, has seen enough.

    Args:
        name: the command's.
        run: reads its arguments and does what they say; gives the exit code.
    """
    with _streams() as output:
        try:
            try:
                return run()
            finally:  # --help ends the process, and is output, too
                output.flush()
        except _NotWrittenError as error:
            output.discard()
            if isinstance(error.reason, BrokenPipeError):
                return 0
            complain(name, f"standard output: {error}")
            return 2
        except KeyboardInterrupt:
            complain(name, "interrupted")
            return 130


def utf8(argument: str) -> str:
    """Return an argument of the command line as UTF-8, whatever the locale takes it for.

    In a C locale Python keeps each byte above 127 as a lone surrogate. An argument that is no UTF-8
    is returned as it is.
    """
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        return argument


def complain(name: str, message: str) -> None:
    """Write a line to stderr, under a command's name; if nobody can read it, the code says it."""
    with contextlib.suppress(OSError):
        print(f"{name}: {message}", file=sys.stderr)


class _NotWrittenError(Exception):
    """The system did not take what was printed; no OSError, which would be taken for a file's."""

    def __init__(self, reason: OSError) -> None:
        self.reason = reason
        super().__init__(reason.strerror or str(reason))


class _Output:
    """A stream whose failures are told from those of files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text."""
        with _telling():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write what is kept back."""
        with _telling():
            self._stream.flush()

    def discard(self) -> None:
        """Let what could not be written be dropped: the end of the process would try again."""
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), self._stream.fileno())


@contextlib.contextmanager
def _telling() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _NotWrittenError(error) from None


@contextlib.contextmanager
def _streams() -> Generator[_Output]:
    """Put something in the place of streams that cannot be used as they are; give the output."""
    kept = sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as opened:
        # A closed one is None; whatever file is opened first would get its number.
        given, written, complaints = (
            cast(TextIO, opened.enter_context(open(os.devnull, mode))) if stream is None else stream
            for stream, mode in zip(kept, "rww", strict=True)
        )
        _take_all_characters(written)
        if isinstance(given, io.TextIOWrapper):
            # In a C locale the encoding is ASCII, while terminals send UTF-8.
            ascii_only = codecs.lookup(given.encoding).name == "ascii"
            given.reconfigure(encoding="utf-8" if ascii_only else None, errors="replace")
        output = _Output(written)
        sys.stdin, sys.stdout, sys.stderr = given, cast(TextIO, output), complaints
        try:
            yield output
        finally:
            sys.stdin, sys.stdout, sys.stderr = kept


def _take_all_characters(stream: TextIO) -> None:
    """Let a stream write characters that its encoding has not as their numbers, as stderr does."""
    if isinstance(stream, io.TextIOWrapper):
        # In UTF-8 surrogates stand for bytes of a file's name, and are written as these.
        utf8 = stream.encoding.lower().startswith("utf")
        if stream.errors == "strict" or (stream.errors == "surrogateescape" and not utf8):
            stream.reconfigure(errors="backslashreplace")
