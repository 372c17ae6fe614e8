"""Programs on a pseudo-terminal: text goes in as if typed, the screen's text is awaited."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

CTRL_C, CTRL_D = "\x03", "\x04"

_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|[()][0-9A-B]|[=>])|\r(?!\n)|[\x07\x08]")
"""Sequences that move the cursor or set colours."""


_CONTROLLED = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Program that takes its input as controlling terminal, so Ctrl+C is a signal, and becomes another.

Forking in the process of the tests, as ``pty.fork`` does, is not safe beside its threads."""


class Terminal:
    """A program on a pseudo-terminal of 100 columns and 30 rows; it is killed at the end.

    Args:
        argv: the program and its arguments.
        variables: environment variables, beside those of the test.
    """

    def __init__(self, argv: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        self.text = ""
        """All text that was shown, without escape sequences."""
        self._seen = 0
        environment = {**os.environ, "TERM": "xterm", **(variables or {})}
        self._terminal, other = pty.openpty()
        size = struct.pack("HHHH", 30, 100, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _CONTROLLED, *argv],
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
            start_new_session=True,
        )
        os.close(other)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._terminal)

    def send(self, text: str) -> None:
        """Type a text; \\r is the Enter key."""
        os.write(self._terminal, text.encode())

    def expect(self, text: str, seconds: float = 25.0) -> str:
        """Wait until a text is shown after the last expected one; return what precedes it."""
        end = time.monotonic() + seconds
        while (found := self.text.find(text, self._seen)) < 0:
            if time.monotonic() > end or not self._read(end):
                raise AssertionError(f"{text!r} was not shown after {self.text[self._seen :]!r}")
        before = self.text[self._seen : found]
        self._seen = found + len(text)
        return before

    def end(self, seconds: float = 25.0) -> int:
        """Wait until the program ends; return its exit code."""
        end = time.monotonic() + seconds
        while self._read(end):
            pass
        return self._process.wait(max(1.0, end - time.monotonic()))

    def _read(self, end: float) -> bool:
        """Read what is shown; return False if the terminal was closed, or at the end of time."""
        ready, _, _ = select.select([self._terminal], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return False
        try:
            shown = os.read(self._terminal, 1 << 16)
        except OSError:  # the program has ended
            return False
        if b"\x1b[6n" in shown:  # a request for the cursor's position
            self.send("\x1b[1;1R")
        self.text += _ESCAPES.sub("", shown.decode(errors="replace"))
        return bool(shown)
