"""Who listens while programs run, and what they say.

A request listens while it infers. What it runs may be programs of programs (parts, tiles, experts)
on any thread's behalf; only the innermost, which a device runs, know their times. So these speak to
whoever listens in their context, and nobody between has to pass it on.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from npuw_layer.execution.profiling.times import LayerTime


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One run of a program on a device."""

    labels: tuple[str, ...]
    """Whose program it is, the outermost first."""
    layers: Sequence[LayerTime]

    @property
    def total_ns(self) -> int:
        """How long the device was busy with it."""
        return max((layer.start_ns + layer.duration_ns for layer in self.layers), default=0)


_runs: ContextVar[list[ProgramRun] | None] = ContextVar("runs", default=None)
_labels: ContextVar[tuple[str, ...]] = ContextVar("labels", default=())


@contextmanager
def recording() -> Generator[list[ProgramRun]]:
    """Listen; the list grows with each run of a program. Who listened before hears all of it."""
    outer, own = _runs.get(), list[ProgramRun]()
    token = _runs.set(own)
    try:
        yield own
    finally:
        _runs.reset(token)
        if outer is not None:
            outer += own


@contextmanager
def within(label: str) -> Generator[None]:
    """Say whose the programs are that run meanwhile."""
    token = _labels.set((*_labels.get(), label))
    try:
        yield
    finally:
        _labels.reset(token)


def is_recording() -> bool:
    """Whether anybody listens."""
    return _runs.get() is not None


def note(layers: Sequence[LayerTime]) -> None:
    """Tell of a run that has just ended."""
    runs = _runs.get()
    if runs is not None:
        runs.append(ProgramRun(_labels.get(), layers))
