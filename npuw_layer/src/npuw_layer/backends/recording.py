"""Times of programs' layers, reported by devices to the current listener.

A request listens while it infers. What it runs may be programs of programs (parts, tiles, experts)
on any thread's behalf; only the innermost, which a device runs, know their times. So these report
to the listener of their context, and nothing in between has to pass times on.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LayerTime:
    """A layer of one run; nanoseconds of the device, which a simulated one has of its own."""

    name: str
    kind: str
    """What it computes, e.g. "MatMul"; empty if the program does not say."""
    ran: bool
    """Whether anything was left of it to run."""
    start_ns: int
    """Since the run began."""
    duration_ns: int
    """From its first task's begin to its last one's end; layers overlap."""
    dpu_ns: int
    sw_ns: int
    dma_ns: int
    """Sums of its tasks on DPU, SHAVE and DMA."""


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
