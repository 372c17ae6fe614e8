"""What may run side by side.

An operation's level is one more than the highest of those that it must follow: the writers of what
it reads, and the readers and writers of what it writes. Operations of one level reach nothing that
another of them writes; so they may run at the same time, and levels one after the other leave the
same bytes as the order.
"""

from __future__ import annotations

import numpy as np

from driver_layer.engines.native.jit.emitter import I64
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.template import Access
from driver_layer.engines.native.lower.walk import NONE, Ground, Walk, flags, walk_kernel


def find_levels(ground: Ground, regions: Ints, dropped: Flags, kernels: Kernels) -> Ints:
    """Give the level of each operation; of dropped ones, NONE.

    Args:
        ground: all operations.
        regions: of their accesses.
        dropped: operations that are not executed.
        kernels: of the host.
    """
    levels = np.full(len(dropped), NONE, np.int64)
    readable, writable = ground.regions(0), ground.regions(0)
    ground.walk(kernels, _LEVELS, regions, flags(dropped), readable, writable, levels)
    return levels


def _walk_levels(walk: Walk) -> None:
    # By region: the first level that may read it, and the first that may write it.
    regions, dropped, readable, writable, levels = walk.own
    with walk.operations() as operation, walk.when(walk.same(dropped[operation], I64(0))):
        level = walk.e.variable(I64(0))
        level.set(I64(0))
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


_LEVELS = walk_kernel("levels", 5, _walk_levels)
