"""A scheduled program: stretches of tasks, some of which run several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler_layer.model import Model, Port
from compiler_layer.schedule.barriers import Schedule
from compiler_layer.schedule.layout import Layout
from compiler_layer.schedule.views import Buffer

Substitution = Mapping[Buffer, Buffer]
"""Which buffers take the place of those that tasks were scheduled with."""


@dataclass(frozen=True, slots=True)
class Run:
    """One time that a stretch runs: with which buffers, and as which ops.

    ``ops`` is added to the numbers of its tasks' ops.
    """

    buffers: Substitution
    ops: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tasks that follow one another; they are the same in each run, but for their buffers."""

    schedule: Schedule
    runs: Sequence[Run]


@dataclass(frozen=True, slots=True)
class ScheduledProgram:
    """All stretches in order, and the ops, buffers and ports of the program as a whole.

    A model that is not folded is one stretch. A folded one is three: what comes before its body,
    the body, which runs as often as the block is repeated, and the rest.
    """

    layout: Layout
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    stretches: Sequence[Stretch]
    scratch_bytes: int

    @property
    def physical(self) -> int:
        """How many physical barriers it uses."""
        return self.stretches[0].schedule.physical


def unrepeated(
    model: Model, layout: Layout, schedule: Schedule, scratch_bytes: int
) -> ScheduledProgram:
    """A program in which nothing is repeated."""
    stretch = Stretch(schedule, [Run({}, 0)])
    return ScheduledProgram(layout, model.inputs, model.outputs, [stretch], scratch_bytes)
