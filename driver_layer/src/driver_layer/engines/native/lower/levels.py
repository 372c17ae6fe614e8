"""What may run side by side.

An operation is on a higher level than all that it must follow: the writers of what it reads, and
the readers and writers of what it writes. Operations of one level reach nothing that another of
them writes; so they may run at the same time, and levels one after the other leave the same bytes
as the order.

Most operations may run on several levels: from the one behind all that they must follow up to the
one before all that must follow them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from driver_layer.engines.native.jit.emitter import I64
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.template import Access
from driver_layer.engines.native.lower.walk import NONE, Ground, Walk, flags, walk_kernel


@dataclass(frozen=True, slots=True, eq=False)
class Freedom:
    """On which levels operations may run.

    Attributes:
        ground: all operations.
        regions: of their accesses.
        dropped: operations that are not executed.
        kernels: of the host.
    """

    ground: Ground
    regions: Ints
    dropped: Flags
    kernels: Kernels

    def earliest(self, floors: Ints | None = None) -> Ints:
        """Give the lowest level of each operation; of dropped ones, NONE.

        Args:
            floors: levels below which operations must not run.
        """
        floors = np.zeros(len(self.dropped), np.int64) if floors is None else floors
        levels = np.full(len(self.dropped), NONE, np.int64)
        readable, writable = self.ground.regions(0), self.ground.regions(0)
        own = self.regions, flags(self.dropped), readable, writable, levels, floors
        self.ground.walk(self.kernels, _LEVELS, *own)
        return levels

    def latest(self, earliest: Ints) -> Ints:
        """Give the highest levels such that there are no more of them.

        What must follow something must, looked at from the end, precede it.
        """
        levels = np.full(len(self.dropped), NONE, np.int64)
        readable, writable = self.ground.regions(0), self.ground.regions(0)
        own = self.regions, flags(self.dropped), readable, writable, levels, np.zeros_like(levels)
        self.ground.walk(self.kernels, _LEVELS_FROM_THE_END, *own)
        return np.where(self.dropped, NONE, earliest.max(initial=0) - levels)


def _walk_levels(walk: Walk, backwards: bool) -> None:
    # By region: the first level that may read it, and the first that may write it.
    regions, dropped, readable, writable, levels, floors = walk.own
    with (
        walk.operations(backwards) as operation,
        walk.when(walk.same(dropped[operation], I64(0))),
    ):
        level = walk.e.variable(floors[operation])
        for kind, allowed in ((Access.READ, readable), (Access.WRITE, writable)):
            with walk.accesses(operation, kind) as access:
                region = regions[access]
                with walk.when(walk.is_real(region)):
                    level.set(walk.larger(level.get(), allowed[region]))
        levels[operation] = level.get()
        after = walk.b.add(level.get(), I64(1))
        for kind, held in ((Access.READ, (writable,)), (Access.WRITE, (readable, writable))):
            with (
                walk.accesses(operation, kind) as access,
                walk.neighbours(regions[access]) as (other, _),
            ):
                for array in held:
                    array[other] = walk.larger(array[other], after)


_LEVELS = walk_kernel("levels", 6, partial(_walk_levels, backwards=False))
_LEVELS_FROM_THE_END = walk_kernel("levels from the end", 6, partial(_walk_levels, backwards=True))
