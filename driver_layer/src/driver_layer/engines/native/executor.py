"""Native executor, which lowers a program to a table and runs the table."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NoReturn

import numpy as np

from driver_layer.engines.contract import Run
from driver_layer.engines.executor import Spans
from driver_layer.engines.native.dispatch.table import Table
from driver_layer.engines.native.dispatch.team import Team, shared_team
from driver_layer.engines.native.dma.kernels import GatherWord, gather_list
from driver_layer.engines.native.jit.host import Host, detect
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.accesses import Accesses, BadAccess, collect_accesses
from driver_layer.engines.native.lower.address_map import AddressMap
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.copy_propagation import CopyPropagation, propagate_copies
from driver_layer.engines.native.lower.dataflow import NONE, AccessGraph
from driver_layer.engines.native.lower.dma import dma_operations
from driver_layer.engines.native.lower.dpu import dpu_operations
from driver_layer.engines.native.lower.fixups import Fixups, find_fixups
from driver_layer.engines.native.lower.issue_order import find_issue_order
from driver_layer.engines.native.lower.levels import Dependences
from driver_layer.engines.native.lower.regions import Regions, find_aliases, number_regions
from driver_layer.engines.native.lower.shave import shave_operations
from driver_layer.engines.native.lower.split_operands import split_operands
from driver_layer.engines.native.lower.table import LoweredProgram, build_table
from driver_layer.engines.native.lower.template import Group
from driver_layer.engines.reference import CheckedEngines, explain_fault
from driver_layer.engines.reference.dma import row_outside
from driver_layer.engines.reference.dpu import check_workloads
from driver_layer.errors import DeviceFault, DriverFault, fault_of
from driver_layer.npu.bus import Bus
from driver_layer.npu.order import Order
from driver_layer.npu.program import DmaWork, DpuWork, Program, Queue, ShaveWork


@cache
def host_kernels(host: Host) -> Kernels:
    """Return the kernels of a host, shared by the process."""
    return Kernels(host)


class NativeExecutor:
    """An executor in native code; satisfies ``engines.executor.Executor``.

    Args:
        kernels: kernels of the host; by default this machine's.
        team: threads that run tables; by default the process's.

    Raises:
        EngineError: the environment requests an instruction set that this machine lacks.
    """

    def __init__(self, kernels: Kernels | None = None, team: Team | None = None) -> None:
        self._kernels = kernels or host_kernels(detect())
        self._team = team or shared_team(self._kernels)

    def order(self, program: Program, physical_barriers: int) -> Order:
        """Simulate the barriers and return the order of tasks.

        Raises:
            DeviceFault: a deadlock, a wrongly used barrier, or a barrier that never completes.
        """
        return find_issue_order(program, physical_barriers, self._kernels)

    def prepare(self, program: Program, order: Order, bus: Bus, spans: Spans | None = None) -> Run:
        """Lower a program to a table.

        Raises:
            DeviceFault: a task is malformed, or accesses unmapped memory; the fault names the task.
        """
        if not len(order):
            return _nothing
        lowering = _Lowering(program, order, bus, self._kernels)
        lowered, accesses = lowering.lower(self._team.threads)
        fixups = None if spans is None else find_fixups(lowered, accesses, spans)
        steps = accesses.step[lowered.calls.operation]
        hungriest = _task(program, order, steps[lowered.scratch.argsort()[-1:]])
        explain = partial(explain_fault, program, order, bus)
        table, gathers = lowered.table, lowered.gathers
        return NativeRun(self._team, table, steps, gathers, hungriest, explain, fixups)


@dataclass(frozen=True, slots=True, eq=False)
class NativeRun:
    """A table ready to run; satisfies ``contract.Run`` and ``executor.Rebasable``.

    Attributes:
        team: threads that run the table.
        table: the lowered program.
        steps: step of the order, for each row of the table.
        gathers: True for each row that is a gather.
        hungriest: queue and index of the task that needs most scratch memory, if any does.
        explain: raises the fault of a step.
        fixups: address words of the table; None if some are unknown, or rebasing is not requested.
    """

    team: Team
    table: Table
    steps: Ints
    gathers: Flags
    hungriest: tuple[str, int] | tuple[None, None]
    explain: Callable[[int], NoReturn]
    fixups: Fixups | None

    def __call__(self) -> None:
        """Execute the program once.

        Raises:
            DeviceFault: a task failed.
            OutOfMemory: the host has no memory left.
        """
        try:
            self.team.run(self.table)
        except MemoryError as error:
            raise fault_of(error, *self.hungriest) from None
        failed = self.table.failure
        if failed is not None:
            self._fail(failed)

    def _fail(self, row: int) -> NoReturn:
        """Raise the fault of a row.

        Raises:
            DeviceFault, OutOfMemory: one of them, always.
        """
        python = self.table.python.get(row)
        if python is not None and python.error is not None:
            raise python.error
        try:
            self.explain(int(self.steps[row]))
        except DeviceFault as fault:
            if not self.gathers[row]:
                raise
            # The copy of the gather's list to CMX may have been eliminated; then the reference
            # engine reads stale bytes there.
            words = self.table.arguments(row, GatherWord.WORDS)
            outside = row_outside(gather_list(words), int(words[GatherWord.ROWS]))
            message = outside or fault.message
            raise DeviceFault(message, fault.engine, fault.task, fault.address) from None

    def rebased(self, spans: Spans, explain: Callable[[int], NoReturn]) -> NativeRun | None:
        """Return the same program for other memory; see ``executor.Rebasable``."""
        table = None if self.fixups is None else self.fixups.rebased(self.table, spans)
        return None if table is None else replace(self, table=table, explain=explain, fixups=None)


def _analyse(
    whole: Accesses, pinned: Flags, kernels: Kernels
) -> tuple[Accesses, Regions, AccessGraph | None]:
    """Split operands, and find aliases; the graph is None if regions alias too often."""
    whole_regions = number_regions(whole.hosts, whole.shapes, whole.writes)
    graph = _access_graph(whole, whole_regions)
    if graph is None:
        return whole, whole_regions, None
    accesses, regions = split_operands(whole, whole_regions, graph, pinned, kernels)
    if accesses is whole:
        return whole, whole_regions, graph
    split_graph = _access_graph(accesses, regions)
    if split_graph is None:
        return whole, whole_regions, graph
    return accesses, regions, split_graph


def _access_graph(accesses: Accesses, regions: Regions) -> AccessGraph | None:
    aliases = find_aliases(regions.table)
    return None if aliases is None else AccessGraph.of(accesses, aliases)


def _nothing() -> None:
    """Run a program without tasks."""


class _Lowering:
    """Lowering of one program."""

    def __init__(self, program: Program, order: Order, bus: Bus, kernels: Kernels) -> None:
        self._program, self._order, self._bus, self._kernels = program, order, bus, kernels
        self._reference = CheckedEngines()
        self._shave_kernels: set[str] = set()

    def lower(self, threads: int) -> tuple[LoweredProgram, Accesses]:
        """Build the table; return the lowered program, and its accesses before copy propagation.

        Raises:
            DeviceFault: a task is malformed, or accesses unmapped memory.
        """
        whole = self._collect()
        pinned = _without_kernel(whole)
        accesses, regions, graph = _analyse(whole, pinned, self._kernels)
        python = {
            operation: self._prepared(int(accesses.step[operation]))
            for operation in np.flatnonzero(pinned).tolist()
        }
        if graph is None:
            # With unknown dependences, operations run one after the other.
            nothing = np.full(len(regions.numbers), NONE, np.int64)
            propagation = CopyPropagation(
                nothing, np.zeros(len(accesses), np.bool_), regions.numbers
            )
            dependences = None
        else:
            propagation = propagate_copies(accesses, regions, graph, pinned, self._kernels)
            regions_left, eliminated = propagation.regions, propagation.eliminated
            dependences = Dependences(graph, regions_left, eliminated, self._kernels)
        return build_table(
            accesses, propagation, dependences, self._kernels, python, threads
        ), accesses

    def _collect(self) -> Accesses:
        """Return all operations of the program, in issue order."""
        steps_by_queue = _steps(self._program, self._order)
        groups = [
            (group, steps)
            for queue, steps in zip(self._program.queues, steps_by_queue, strict=True)
            for group in self._operations(queue)
        ]
        try:
            return collect_accesses(groups, AddressMap(self._bus))
        except BadAccess as bad:
            explain_fault(self._program, self._order, self._bus, bad.step)

    def _operations(self, queue: Queue) -> list[Group]:
        check = partial(self._check, queue)
        work = queue.work
        if isinstance(work, DmaWork):
            return dma_operations(work, self._bus, check)
        if isinstance(work, DpuWork):
            self._check_workloads(queue.name, work)
            return dpu_operations(work, self._kernels.host, check)
        assert isinstance(work, ShaveWork)
        return shave_operations(work, check, self._shave_kernels)

    def _check_workloads(self, name: str, work: DpuWork) -> None:
        """Check all workloads of a queue at once, also those that share a template."""
        try:
            check_workloads(work.registers, work.tile, self._bus)
        except DeviceFault as fault:
            raise fault.at(name, fault.task) from None

    def _check(self, queue: Queue, index: int) -> None:
        with _naming(queue.name, index):
            queue.work.prepare(index, self._reference, self._bus)

    def _prepared(self, step: int) -> Run:
        """Return a task in the reference engine; its faults name the task."""
        queue, index = self._program.queues[self._order.queues[step]], self._order.tasks[step]
        task = queue.work.prepare(index, self._reference, self._bus)

        def run() -> None:
            with _naming(queue.name, index):
                task()

        return run


@contextmanager
def _naming(queue: str, index: int) -> Generator[None]:
    """Name a task in the faults of a block."""
    try:
        yield
    except (DriverFault, MemoryError) as error:
        raise fault_of(error, queue, index) from None


def _task(program: Program, order: Order, steps: Ints) -> tuple[str, int] | tuple[None, None]:
    """Return queue and index of the task of the first of some steps, if there is one."""
    if not len(steps):
        return None, None
    step = int(steps[0])
    return program.queues[order.queues[step]].name, order.tasks[step]


def _steps(program: Program, order: Order) -> list[Ints]:
    """Return the steps of each queue's tasks in the order."""
    queues = np.asarray(order.queues, np.int64)
    return [np.flatnonzero(queues == number) for number in range(len(program.queues))]


def _without_kernel(accesses: Accesses) -> Flags:
    """Flag operations without a kernel, or whose kernel would overwrite operands it still reads.

    A task reads all of its operands before it writes; a kernel interleaves reads and writes.
    """
    without = np.array([one.spec is None for one in accesses.templates], np.bool_)
    careful = np.array([not one.in_place for one in accesses.templates], np.bool_)
    chosen = without[accesses.template]
    begins, owners = accesses.hosts, accesses.owners
    ends = begins + (accesses.shapes[:, 0] - 1) * accesses.shapes[:, 1] + accesses.shapes[:, 2]
    written = np.flatnonzero(accesses.writes & careful[accesses.template[owners]])
    makers = owners[written]
    for number in range(int(np.diff(accesses.first).max(initial=0))):
        other = accesses.first[makers] + number
        there = (other < accesses.first[makers + 1]) & (other != written)
        other = np.minimum(other, len(begins) - 1)
        meet = (begins[other] < ends[written]) & (begins[written] < ends[other])
        chosen[makers[there & meet]] = True
    return chosen
