"""Scheduling of a lowered model to a program."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from compiler_layer.errors import NotPeriodic
from compiler_layer.model import NO_PORTS, Model, PortSelection
from compiler_layer.partition.repeated.attributes import Kept, kept_repetitions, repeated_ids
from compiler_layer.schedule.barriers import (
    ALONE,
    PhasePosition,
    QueueKey,
    Schedule,
    assign_barriers,
    queues_of,
)
from compiler_layer.schedule.dependencies import dependencies
from compiler_layer.schedule.in_place import order_in_place
from compiler_layer.schedule.layout import BufferLayout, layout
from compiler_layer.schedule.order import Fences, Ordered, order_steps
from compiler_layer.schedule.place_ddr import lifetimes, place_ddr
from compiler_layer.schedule.program import Phase, Run, ScheduledProgram
from compiler_layer.schedule.repeat import find_body
from compiler_layer.schedule.tasks import Step, Task
from compiler_layer.schedule.unfold import Unfolding
from compiler_layer.schedule.unroll import unroll_all
from compiler_layer.schedule.views import Buffer, Space
from driver_layer.abi.platforms import Platform


def schedule(
    model: Model,
    platform: Platform,
    tiles: int,
    in_place: bool = False,
    strided: PortSelection = NO_PORTS,
) -> ScheduledProgram:
    """Lay out a lowered model, split it into tasks, and order them.

    Args:
        model: lowered model.
        platform: target device.
        tiles: number of tiles to use.
        in_place: whether variables are written where they are read; such a model is not folded.
        strided: arguments whose strides the caller chooses; such a model is not folded.

    Raises:
        NotPeriodic: the model is folded, and its repetitions have become different.
        DoesNotFit: a step's operands are larger than CMX.
    """
    kept = kept_repetitions(model)
    barriers = platform.barriers_per_tile * tiles
    if in_place:
        laid_out, ordered = order_in_place(model, platform, strided)
    else:
        laid_out = layout(model, strided=strided)
        steps = unroll_all(laid_out, platform)
        if kept is not None:
            return _Folded(model, laid_out, kept, steps).schedule(platform, barriers)
        ordered = order_steps(steps, platform.workspace_bytes)
    scratch_bytes = place_ddr(lifetimes(ordered.tasks))
    queues = queues_of(ordered.tasks, platform.dma_ports)
    whole = Phase(_with_barriers(ordered.tasks, queues, barriers, ALONE), [Run({}, 0)])
    return ScheduledProgram(laid_out, model.inputs, model.outputs, [whole], scratch_bytes)


def _with_barriers(
    tasks: Sequence[Task], queues: Sequence[QueueKey], physical: int, standing: PhasePosition
) -> Schedule:
    after = dependencies(tasks, queues, standing.first)
    return assign_barriers(tasks, after, physical, queues, standing)


class _Folded:
    """Scheduler of a folded model: the phase before its body, the body once, and the rest."""

    def __init__(
        self, model: Model, folded: BufferLayout, kept: Kept, steps: Sequence[Step]
    ) -> None:
        self._model = model
        self._folded = folded
        self._steps = steps
        self._body = find_body(folded, kept, repeated_ids(model))

    def schedule(self, platform: Platform, barriers: int) -> ScheduledProgram:
        ordered = order_steps(self._steps, platform.workspace_bytes, self._fences())
        turns = {
            written: Buffer(written.name, Space.SCRATCH, written.nbytes)
            for written in self._body.carried.values()
        }
        scratch_bytes = place_ddr(self._spans(ordered, turns))
        queues = queues_of(ordered.tasks, platform.dma_ports)
        unfolding = Unfolding(self._model, self._folded, self._body, turns)
        runs = ([Run({}, 0)], unfolding.body_runs, [unfolding.rest_run])
        bounds = [0, *ordered.cuts, len(ordered.tasks)]
        phases: list[Phase] = []
        for number, (begin, end) in enumerate(pairwise(bounds)):
            standing = PhasePosition(first=number == 0, last=number == len(runs) - 1)
            tasks, their_queues = ordered.tasks[begin:end], queues[begin:end]
            made = _with_barriers(tasks, their_queues, barriers, standing)
            phases.append(Phase(made, runs[number]))
        return ScheduledProgram(
            unfolding.layout, unfolding.inputs, unfolding.outputs, phases, scratch_bytes
        )

    def _fences(self) -> Fences:
        """Return the first steps of the body, and of the ops after the body."""
        ops = [step.op for step in self._steps]
        first, second = (bisect_left(ops, op) for op in (self._body.begin, self._body.end))
        if first == 0 or second == len(ops):
            raise NotPeriodic("no ops before, or none after, the repeated layers")
        return Fences(first, second)

    def _spans(
        self, ordered: Ordered, turns: dict[Buffer, Buffer]
    ) -> dict[Buffer, tuple[int, int]]:
        """Return the lifetimes of scratch buffers; the body runs several times."""
        begin, end = ordered.cuts
        spans = lifetimes(ordered.tasks)
        for buffer, (first, last) in list(spans.items()):
            if buffer in turns:
                # Passed on from every run to the next: live all the time.
                spans[buffer] = (begin, max(last, end))
                spans[turns[buffer]] = (begin, end)
            elif first < begin <= last and buffer not in self._body.carried:
                # Read by every run.
                spans[buffer] = (first, max(last, end))
        return spans
