"""Construction of the dispatcher's table: rows, units and phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from driver_layer.engines.contract import Run
from driver_layer.engines.native.dispatch.table import MOST_QUEUES, PythonRow, Table
from driver_layer.engines.native.dma.kernels import GATHER
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.balance import balance
from driver_layer.engines.native.lower.calls import Calls, make_calls
from driver_layer.engines.native.lower.copy_propagation import CopyPropagation
from driver_layer.engines.native.lower.dataflow import NONE
from driver_layer.engines.native.lower.levels import Dependences, align_levels
from driver_layer.engines.native.lower.merge import merge_calls
from driver_layer.engines.native.lower.reduction_chains import (
    find_reduction_chains,
    fuse_accesses,
    fuse_calls,
)
from driver_layer.engines.native.lower.splits import split_calls
from driver_layer.engines.native.lower.work_units import make_work_units


@dataclass(frozen=True, slots=True, eq=False)
class LoweredProgram:
    """A table, and the calls in its rows."""

    table: Table
    calls: Calls

    @property
    def gathers(self) -> Flags:
        """True for each row that is a gather."""
        is_gather = np.array([one.spec is GATHER for one in self.calls.templates], np.bool_)
        return is_gather[self.calls.template]

    @property
    def scratch(self) -> Ints:
        """Bytes of scratch memory that each row needs."""
        return np.array([one.scratch for one in self.calls.templates], np.int64)[
            self.calls.template
        ]


def build_table(
    accesses: Accesses,
    propagation: CopyPropagation,
    dependences: Dependences | None,
    kernels: Kernels,
    python: Mapping[int, Run],
    threads: int,
) -> LoweredProgram:
    """Schedule operations, and build the native table.

    Args:
        accesses: all operations.
        propagation: redirected operands and eliminated copies.
        dependences: dependences between operations; None if unknown: then they run in order.
        kernels: kernels of the host.
        python: operations that the reference engine runs.
        threads: number of threads that run the table.
    """
    in_python = np.zeros(len(accesses), np.bool_)
    in_python[list(python)] = True
    calls = make_calls(accesses, propagation, in_python)
    if dependences is None:
        levels = np.arange(len(accesses))
    else:
        chains = find_reduction_chains(calls, accesses, dependences)
        calls, dependences = fuse_calls(calls, chains), fuse_accesses(dependences, chains)
        levels = align_levels(calls, dependences, dependences.asap_levels())
    calls = replace(calls, level=levels[calls.operation])
    calls = balance(merge_calls(split_calls(calls), threads), threads)
    units = make_work_units(calls, min(threads, MOST_QUEUES))
    calls = units.calls
    rows = np.zeros((len(calls), 2), np.int64)
    used: list[int] = np.unique(calls.template).tolist()
    addresses = np.zeros(len(calls.templates), np.int64)
    for number in used:
        spec = calls.templates[number].spec
        addresses[number] = 0 if spec is None else kernels.address(spec)
    rows[:, 0] = addresses[calls.template]
    rows[:, 1] = calls.pool.ctypes.data + 8 * calls.begin
    python_rows = {
        row: PythonRow(python[int(calls.operation[row])])
        for row in np.flatnonzero(in_python[calls.operation]).tolist()
    }
    for row, made in python_rows.items():
        rows[row] = made.address, 0
    count = int(levels.max(initial=NONE)) + 1
    scratch = max((calls.templates[number].scratch for number in used), default=0)
    bounds, streams = units.queue_bounds(count), units.streams(count)
    table = Table(rows, units.begins, bounds, scratch, streams, calls.pool, python_rows)
    return LoweredProgram(table, calls)
