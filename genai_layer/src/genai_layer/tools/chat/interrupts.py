"""Keys while a model answers: Ctrl+C, and others, which wait for the next question."""

from __future__ import annotations

import signal
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from genai_layer.streamers import StreamingStatus


class StopKey:
    """Ctrl+C as a request to stop an answer and keep its text.

    Before the first text there is nothing to keep, and a second press means that stopping takes too
    long: then KeyboardInterrupt is raised, as without this class.
    """

    def __init__(self) -> None:
        self._begun = False
        self.pressed = False
        """True if the answer is to stop."""

    def status(self) -> StreamingStatus:
        """Return the request to the generation; text has begun."""
        self._begun = True
        return StreamingStatus.STOP if self.pressed else StreamingStatus.RUNNING

    @contextmanager
    def watched(self) -> Generator[None]:
        """Handle the key in a block of the main thread."""
        before = signal.signal(signal.SIGINT, self._press)
        try:
            with _unechoed():
                yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _press(self, _: int, __: FrameType | None) -> None:
        if self.pressed or not self._begun:
            raise KeyboardInterrupt
        self.pressed = True


@contextmanager
def _unechoed() -> Generator[None]:
    """Keep the terminal from showing keys within the answer; the next question receives them."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    changed = [*before]
    changed[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
