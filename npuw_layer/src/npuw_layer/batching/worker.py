"""A thread that runs steps while work is pending."""

from __future__ import annotations

import threading
from typing import Self

from npuw_layer.batching.engine import ContinuousBatching

PATIENCE = 0.002
"""Seconds that a step waits for conversations that have just received their logits (A)."""


class Worker:
    """Thread that drives an engine: callers only submit tokens and wait for futures.

    Args:
        engine: an engine whose steps no other thread runs.
        patience: seconds that a step waits for conversations about to submit.
    """

    def __init__(self, engine: ContinuousBatching, patience: float = PATIENCE) -> None:
        self._engine = engine
        self._patience = patience
        self._ends = False
        self._thread = threading.Thread(target=self._work, name="npuw-batching", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the engine and end the thread."""
        self._ends = True
        self._engine.close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _work(self) -> None:
        try:
            while not self._ends:
                if self._engine.wait(patience=self._patience):
                    self._engine.step()
        finally:
            self._engine.close()  # always: no caller may wait for ever
