"""Levels: a schedule of independent operations, from their memory dependences.

An operation depends on the writers of the bytes that it reads, and on the readers and writers of
those that it writes; its level is higher than theirs. Operations of one level are independent and
may run concurrently; running level by level leaves the same bytes as the program's order.

Most operations may run on several levels: from the ASAP level, after all their dependences, to the
ALAP level, before all their dependents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from driver_layer.engines.native.jit.emitter import I64
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.dataflow import NONE, AccessGraph, Scan, flags, scan_kernel
from driver_layer.engines.native.lower.template import Access


@dataclass(frozen=True, slots=True, eq=False)
class Dependences:
    """Memory dependences between operations.

    Attributes:
        graph: accesses of all operations.
        regions: regions of the accesses.
        eliminated: True for operations that are not executed.
        kernels: kernels of the host.
    """

    graph: AccessGraph
    regions: Ints
    eliminated: Flags
    kernels: Kernels

    def asap_levels(self, floors: Ints | None = None) -> Ints:
        """Return the lowest level of each operation; NONE for eliminated operations.

        Args:
            floors: lower bounds of the levels.
        """
        floors = np.zeros(len(self.eliminated), np.int64) if floors is None else floors
        levels = np.full(len(self.eliminated), NONE, np.int64)
        readable, writable = self.graph.per_region(0), self.graph.per_region(0)
        state = self.regions, flags(self.eliminated), readable, writable, levels, floors
        self.graph.run(self.kernels, _LEVELS, *state)
        return levels

    def alap_levels(self, earliest: Ints) -> Ints:
        """Return the highest level of each operation with no more levels than ``earliest``.

        The levels are ASAP levels of the reversed program, counted from the end.
        """
        levels = np.full(len(self.eliminated), NONE, np.int64)
        readable, writable = self.graph.per_region(0), self.graph.per_region(0)
        state = (
            self.regions,
            flags(self.eliminated),
            readable,
            writable,
            levels,
            np.zeros_like(levels),
        )
        self.graph.run(self.kernels, _REVERSED_LEVELS, *state)
        return np.where(self.eliminated, NONE, earliest.max(initial=0) - levels)


def _scan_levels(scan: Scan, backwards: bool) -> None:
    # By region: the lowest level that may read it, and the lowest that may write it.
    regions, eliminated, readable, writable, levels, floors = scan.state
    with (
        scan.operations(backwards) as operation,
        scan.when(scan.equal(eliminated[operation], I64(0))),
    ):
        level = scan.e.variable(floors[operation])
        for kind, allowed in ((Access.READ, readable), (Access.WRITE, writable)):
            with scan.accesses(operation, kind) as access:
                region = regions[access]
                with scan.when(scan.exists(region)):
                    level.set(scan.maximum(level.get(), allowed[region]))
        levels[operation] = level.get()
        after = scan.b.add(level.get(), I64(1))
        for kind, held in ((Access.READ, (writable,)), (Access.WRITE, (readable, writable))):
            with (
                scan.accesses(operation, kind) as access,
                scan.aliases(regions[access]) as (other, _),
            ):
                for array in held:
                    array[other] = scan.maximum(array[other], after)


_LEVELS = scan_kernel("levels", 6, partial(_scan_levels, backwards=False))
_REVERSED_LEVELS = scan_kernel("reversed levels", 6, partial(_scan_levels, backwards=True))
