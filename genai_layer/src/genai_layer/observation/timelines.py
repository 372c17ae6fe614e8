"""Times of programs' tasks on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


class TaskSpan(Protocol):
    """Time in which a unit of the device runs one task of a program."""

    @property
    def engine(self) -> str:
        """Kind of the unit: "DMA", "DPU" or "SHAVE"."""
        ...

    @property
    def name(self) -> str:
        """Operation of the model that the task belongs to."""
        ...

    @property
    def begin_ns(self) -> int:
        """Begin, counted from the start of the program."""
        ...

    @property
    def end_ns(self) -> int:
        """End, counted likewise."""
        ...


@runtime_checkable
class ShowsTimelines(Protocol):
    """Ability of a compiled model: times of its programs' tasks, equal for all runs."""

    def timeline(self, program: str, /) -> Sequence[TaskSpan] | None:
        """Return the tasks of a program in the order of their begin.

        Args:
            program: one of ``ObservedStep.programs``.

        Returns:
            The tasks; None if the device does not know them.

        Raises:
            RuntimeError: there is no such program, or the device failed.
        """
        ...
