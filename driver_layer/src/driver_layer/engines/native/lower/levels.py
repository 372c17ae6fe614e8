"""Levels: a schedule of independent operations, from their memory dependences.

An operation depends on the writers of the bytes that it reads, and on the readers and writers of
those that it writes; its level is higher than theirs. Operations of one level are independent and
may run concurrently; running level by level leaves the same bytes as the program's order.

Most operations may run on several levels: from the ASAP level, after all their dependences, to the
ALAP level, before all their dependents.

Calls that may be merged move to one level. The schedule for CMX lets rows of one matmul become
ready on different levels, where each call would pack the weights again. The earlier rows wait for
the later ones if their ALAP level allows; this adds no level, and successors are aligned
separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from driver_layer.engines.native.jit.emitter import I64
from driver_layer.engines.native.jit.kernels import Kernels, KernelSpec
from driver_layer.engines.native.lower.arrays import Flags, Ints, equal_rows
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.dataflow import NONE, AccessGraph, Scan, flags, scan_kernel
from driver_layer.engines.native.lower.template import Access, Template


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
        return self._levels(_LEVELS, floors)

    def alap_levels(self, earliest: Ints) -> Ints:
        """Return the highest level of each operation with no more levels than ``earliest``.

        The levels are ASAP levels of the reversed program, counted from the end.
        """
        levels = self._levels(_REVERSED_LEVELS, np.zeros(len(self.eliminated), np.int64))
        return np.where(self.eliminated, NONE, earliest.max(initial=0) - levels)

    def _levels(self, scan: KernelSpec, floors: Ints) -> Ints:
        levels = np.full(len(self.eliminated), NONE, np.int64)
        readable, writable = self.graph.per_region(0), self.graph.per_region(0)
        state = self.regions, flags(self.eliminated), readable, writable, levels, floors
        self.graph.run(self.kernels, scan, *state)
        return levels


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


_ROUNDS = 8
"""Maximum number of levels to which the calls of a matmul are aligned; further calls stay."""


def align_levels(calls: Calls, dependences: Dependences, earliest: Ints) -> Ints:
    """Return new levels of all operations.

    Args:
        calls: one call for each executed operation.
        dependences: dependences between the operations.
        earliest: ASAP levels of all operations.
    """
    floors = np.maximum(earliest, 0)
    latest = dependences.alap_levels(earliest)
    for template, members in calls.mergeable():
        operations = calls.operation[members]
        group = _products(calls.words(members, len(template.words)), template)
        floors[operations] = _common(group, earliest[operations], latest[operations])
    return dependences.asap_levels(floors)


def _products(words: Ints, template: Template) -> Ints:
    """Number the matmul of each call; calls of one matmul differ only in their rows."""
    rows = template.parallel_dims[0]
    fixed = words.copy()
    fixed[:, [*(pointer for pointer, _ in rows.pointers), rows.size]] = 0
    return equal_rows(fixed)[1]


def _common(group: Ints, earliest: Ints, latest: Ints) -> Ints:
    """Return the level that each call waits for.

    The calls of a group wait for the last of them, except those whose ALAP level is too low; these
    wait for the last among themselves, and so on.
    """
    level = earliest.copy()
    left = np.ones(len(group), np.bool_)
    for _ in range(_ROUNDS):
        if not left.any():
            break
        last = np.full(int(group.max()) + 1, -1, np.int64)
        np.maximum.at(last, group[left], earliest[left])
        waits = left & (latest >= last[group])
        level[waits] = last[group[waits]]
        left &= ~waits
    return level
