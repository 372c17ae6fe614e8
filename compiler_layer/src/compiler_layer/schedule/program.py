"""A scheduled program: phases of tasks, some of which run several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler_layer.model import Port
from compiler_layer.schedule.barriers import Schedule
from compiler_layer.schedule.layout import BufferLayout
from compiler_layer.schedule.views import Buffer

Substitution = Mapping[Buffer, Buffer]
"""Buffers that replace the buffers with which tasks were scheduled."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a phase: its buffers and its ops.

    ``ops`` is added to the op numbers of the phase's tasks.
    """

    buffers: Substitution
    ops: int


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase: consecutive tasks that are the same in each run but for their buffers."""

    schedule: Schedule
    runs: Sequence[Run]


@dataclass(frozen=True, slots=True)
class ScheduledProgram:
    """All phases in order, and the ops, buffers and ports of the complete program.

    A model that is not folded has one phase. A folded model has three: the ops before its body, the
    body, which runs once for each repetition, and the rest.
    """

    layout: BufferLayout
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    phases: Sequence[Phase]
    scratch_bytes: int

    @property
    def physical(self) -> int:
        """Number of physical barriers that the program uses."""
        return self.phases[0].schedule.physical
