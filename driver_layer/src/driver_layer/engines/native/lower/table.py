"""Rows, units and phases of a program's operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from driver_layer.engines.contract import Run
from driver_layer.engines.native.dispatch.fallback import PythonRow
from driver_layer.engines.native.dispatch.table import MOST_QUEUES, Table
from driver_layer.engines.native.dma.kernels import GATHER
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.align import align
from driver_layer.engines.native.lower.calls import Calls, make_calls
from driver_layer.engines.native.lower.chains import find_chains
from driver_layer.engines.native.lower.forward import Forwarding
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.join import join_accesses, join_calls
from driver_layer.engines.native.lower.levels import Freedom
from driver_layer.engines.native.lower.merge import merge
from driver_layer.engines.native.lower.parts import separate
from driver_layer.engines.native.lower.share import share
from driver_layer.engines.native.lower.streams import find_streams
from driver_layer.engines.native.lower.units import make_units
from driver_layer.engines.native.lower.walk import NONE


@dataclass(frozen=True, slots=True, eq=False)
class Flattened:
    """A table, and the calls that are its rows."""

    table: Table
    calls: Calls

    @property
    def operations(self) -> Ints:
        """The operation of each row."""
        return self.calls.operation

    @property
    def gathers(self) -> Flags:
        """Which rows are gathers."""
        is_gather = np.array([one.spec is GATHER for one in self.calls.templates], np.bool_)
        return is_gather[self.calls.template]


def flatten(
    accesses: Accesses,
    forwarding: Forwarding,
    freedom: Freedom | None,
    kernels: Kernels,
    python: Mapping[int, Run],
    threads: int,
) -> Flattened:
    """Make the native table.

    Args:
        accesses: all operations.
        forwarding: which of them are left out, and what goes through copies.
        freedom: what may run side by side; None: nothing.
        kernels: of the host.
        python: operations that the reference engine runs.
        threads: how many will share them.
    """
    in_python = np.zeros(len(accesses), np.bool_)
    in_python[list(python)] = True
    calls = make_calls(accesses, forwarding, in_python)
    if freedom is None:
        levels = np.arange(len(accesses))
    else:
        chains = find_chains(calls, accesses, freedom)
        calls, freedom = join_calls(calls, chains), join_accesses(freedom, chains)
        levels = align(calls, freedom, freedom.earliest())
    calls = calls.at(levels)
    calls = share(merge(separate(calls), threads), threads)
    units = make_units(calls, min(threads, MOST_QUEUES))
    calls = units.calls
    rows = np.zeros((len(calls), 2), np.int64)
    used: list[int] = np.unique(calls.template).tolist()
    addresses = np.zeros(len(calls.templates), np.int64)
    for number in used:
        spec = calls.templates[number].spec
        addresses[number] = 0 if spec is None else kernels.address(spec)
    rows[:, 0] = addresses[calls.template]
    rows[:, 1] = calls.pool.ctypes.data + 8 * calls.begin
    back = {operation: PythonRow(run) for operation, run in python.items()}
    for row in np.flatnonzero(in_python[calls.operation]).tolist():
        rows[row] = back[int(calls.operation[row])].address, 0
    count = int(levels.max(initial=NONE)) + 1
    scratch = max((calls.templates[number].scratch for number in used), default=0)
    borders, streams = units.borders(count), find_streams(units, count)
    table = Table(rows, units.begins, borders, scratch, streams, calls.pool, keep=back)
    return Flattened(table, calls)
