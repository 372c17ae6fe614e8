"""Times of programs' layers, reported by devices to the current listener.

A request listens during an inference. It may run programs of programs (parts, tiles, experts), on
any thread; only the innermost ones, which a device runs, know their times. They report to the
listener of their context, so that no program in between has to pass times on.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LayerTime:
    """A layer of one run; nanoseconds of the device, on its own clock if simulated."""

    name: str
    kind: str
    """Op type, e.g. "MatMul"; empty if the program does not record it."""
    ran: bool
    """True if any of its tasks remained to run."""
    start_ns: int
    """Start, relative to the start of the run."""
    duration_ns: int
    """Time from the start of the first task to the end of the last; layers overlap."""
    dpu_ns: int
    sw_ns: int
    dma_ns: int
    """Sums of the layer's tasks on DPU, SHAVE and DMA."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One run of a program on a device."""

    labels: tuple[str, ...]
    """Labels of the programs around it, the outermost first."""
    layers: Sequence[LayerTime]

    @property
    def total_ns(self) -> int:
        """Time until the end of the last layer."""
        return max((layer.start_ns + layer.duration_ns for layer in self.layers), default=0)


_runs: ContextVar[list[ProgramRun] | None] = ContextVar("runs", default=None)
_labels: ContextVar[tuple[str, ...]] = ContextVar("labels", default=())


@contextmanager
def recording() -> Generator[list[ProgramRun]]:
    """Collect the runs of programs in a list; outer listeners get them at the end."""
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
    """Label the programs that run in the context."""
    token = _labels.set((*_labels.get(), label))
    try:
        yield
    finally:
        _labels.reset(token)


def is_recording() -> bool:
    """Return whether a listener is active."""
    return _runs.get() is not None


def note(layers: Sequence[LayerTime]) -> None:
    """Report a finished run to the listener."""
    runs = _runs.get()
    if runs is not None:
        runs.append(ProgramRun(_labels.get(), layers))
