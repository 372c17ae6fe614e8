"""Says that something takes its time, where somebody is there to see it."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

_PATIENCE = 1.0
_PERIOD = 0.2


class Progress:
    """Shows a line with the elapsed time on stderr, from the second second on.

    Args:
        what: what is going on.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        began = time.monotonic()
        shown = False
        while not self._done.wait(_PERIOD if shown else _PATIENCE):
            shown = True
            sys.stderr.write(f"\r{self._what} … {time.monotonic() - began:.0f} s")
            sys.stderr.flush()
        if shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
