"""Blocks of matmuls.

Rows are the outer loop, columns the inner one: a block of activations stays in CMX while weights
are streamed. Channels are cut only if a block would not fit otherwise; then activations are
streamed again for every block of columns.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import NamedTuple

from compiler_layer.errors import DoesNotFit
from compiler_layer.passes.tile.machine import (
    TASK_NS,
    Machine,
    Moved,
    Pipeline,
    Price,
    cuts,
    round_up,
    width,
)
from driver_layer.abi.cost import KernelCounts, MatmulShape, dpu_ns, shave_ns
from driver_layer.abi.tasks import DPU_MAX_DIM

_GRAIN = 16
"""Granularity of columns and channels (channel alignment of the DPU)."""


class Strategy(Enum):
    """Distribution of a matmul over tiles; the value is that of the op's ``split``.

    On one tile both are equal; the usual name is Clustering.
    """

    SPLIT_OVER_HEIGHT = "m"
    """Each tile computes other rows; weights are broadcast to all tiles."""
    SPLIT_OVER_KERNEL = "n"
    """Each tile computes other output channels; rows are broadcast to all tiles."""


@dataclass(frozen=True, slots=True)
class MatMulProblem:
    """``batch`` matmuls [m, k] x [k, n]; ``tables`` has (groups, bytes of an entry) per table."""

    batch: int
    m: int
    n: int
    k: int
    a: str
    b: str
    out: str
    group: int = 0
    tables: tuple[tuple[int, int], ...] = ()
    row_scales: bool = False
    b_by_columns: bool = False
    """True if b is stored and loaded as [k, n]."""
    chosen: bool = False
    """True if b is gathered from a stack while loading; its channels are not cut."""


class MatMulChoice(NamedTuple):
    """The strategy, the block (m, n, k) that a tile computes at a time, and the number of tiles."""

    strategy: Strategy
    block: tuple[int, int, int]
    tiles: int


class _Sizes(NamedTuple):
    """Bytes of CMX that a block needs on a tile."""

    act: int
    weight: int
    out: int
    total: int
    """The f32 sum, if it is not the result."""
    parts: int
    """Number of blocks of channels."""

    @property
    def least(self) -> int:
        """Bytes of one step alone."""
        return self.act + self.weight + self.out + self.total

    @property
    def doubled(self) -> int:
        """Bytes with the operands of the next step and the result of the last."""
        acts = self.act * (2 if self.parts > 1 else 1)
        return acts + 2 * (self.weight + self.out) + self.total


def _sizes(x: MatMulProblem, m: int, n: int, k: int) -> _Sizes:
    parts = -(-x.k // k)
    groups = -(-k // x.group) if x.group else 0
    tables = sum(n * min(groups, count) * size for count, size in x.tables)
    return _Sizes(
        act=int(m * k * width(x.a)) + (4 * m if x.row_scales else 0),
        weight=int(n * k * width(x.b)) + tables,
        out=int(m * n * width(x.out)),
        total=4 * m * n if parts > 1 and x.out != "f32" else 0,
        parts=parts,
    )


@cache
def choose_matmul(x: MatMulProblem, machine: Machine) -> MatMulChoice:
    """Choose strategy and block of a matmul.

    Raises:
        DoesNotFit: the smallest block does not fit CMX.
    """
    numbered = enumerate(candidates(x, machine))
    ranked = sorted((_least_ns(x, choice, machine), n, choice) for n, choice in numbered)
    if not ranked:
        need = _sizes(x, 1, min(x.n, _GRAIN), min(x.k, _k_grain(x))).least
        raise DoesNotFit(f"a matmul of {x.k} channels", need, machine.cmx_bytes)
    best = math.inf, -1, ranked[0][-1]
    for least_ns, number, choice in ranked:
        if least_ns > best[0]:
            break  # choices are sorted by this lower bound
        best = min(best, (price_matmul(x, choice, machine).ns, number, choice))
    return best[-1]


def _k_grain(x: MatMulProblem) -> int:
    """Return the granularity of channels: complete groups, unless a group exceeds a DPU task."""
    cuttable = not x.tables or (x.group >= x.k > DPU_MAX_DIM)
    return _GRAIN if cuttable else max(_GRAIN, x.group)


def candidates(x: MatMulProblem, machine: Machine) -> Iterator[MatMulChoice]:
    """Yield all choices that fit, the largest blocks first."""
    channels = [x.k] if x.chosen else list(cuts(x.k, _k_grain(x), DPU_MAX_DIM))
    for tiles in machine.tile_counts():
        for strategy in Strategy:
            by_rows = strategy is Strategy.SPLIT_OVER_HEIGHT
            if by_rows and tiles == 1 < machine.tiles:
                continue  # Clustering, which SPLIT_OVER_KERNEL covers
            rows = -(-x.m // tiles) if by_rows else x.m
            columns = x.n if by_rows else min(x.n, round_up(-(-x.n // tiles), _GRAIN))
            widths = list(cuts(columns, _GRAIN, DPU_MAX_DIM))
            for m in cuts(rows, most=DPU_MAX_DIM):
                for n in widths:
                    k = _channels(x, m, n, channels, machine)
                    if k:
                        yield MatMulChoice(strategy, (m, n, k), tiles)


def _channels(x: MatMulProblem, m: int, n: int, channels: Sequence[int], machine: Machine) -> int:
    """Return the first number of channels that fits, preferably with the next step's; else 0."""
    act, weight, room = m * width(x.a), n * width(x.b), machine.cmx_bytes
    out = int(m * n * width(x.out))
    # Most numbers do not fit even without tables and sums: skip them.
    first = bisect_left(channels, out - room, key=lambda k: -int(act * k) - int(weight * k))
    single = 0
    for k in channels[first:]:
        sizes = _sizes(x, m, n, k)
        if sizes.doubled <= room:
            return k
        if not single and sizes.least <= room:
            single = k
    return single


def _least_ns(x: MatMulProblem, choice: MatMulChoice, machine: Machine) -> float:
    """Return a lower bound of a choice's time: its matmuls, and its tasks without loads.

    Most choices are worse than others by this bound alone, and exact pricing is slow.
    """
    (m, n, k), tiles = choice.block, choice.tiles
    rows, columns, parts = -(-x.m // m), -(-x.n // n), -(-x.k // k)
    by_rows = choice.strategy is Strategy.SPLIT_OVER_HEIGHT
    used = min(tiles, rows if by_rows else columns)
    groups = -(-rows // tiles) if by_rows else rows
    blocks = groups * -(-columns // (1 if by_rows else tiles))
    turns = max(1.0, x.n / (n if by_rows else n * tiles)) * parts
    work = MatmulShape(m, n, k, x.a, x.b, accumulate=parts > 1)
    products_ns = groups * turns * dpu_ns(machine.platform, work)
    return x.batch * (products_ns + blocks * used * (parts + 1) * TASK_NS)


def price_matmul(x: MatMulProblem, choice: MatMulChoice, machine: Machine) -> Price:
    """Price a choice."""
    (m, n, k), tiles, platform = choice.block, choice.tiles, machine.platform
    sizes = _sizes(x, m, n, k)
    row_blocks, column_blocks, parts = -(-x.m // m), -(-x.n // n), sizes.parts
    by_rows = choice.strategy is Strategy.SPLIT_OVER_HEIGHT
    used = min(tiles, row_blocks if by_rows else column_blocks)
    groups = -(-row_blocks // tiles) if by_rows else row_blocks
    # The last group of shared rows takes as long as the others; the last of columns is shorter.
    passes = x.n / n if by_rows else x.n / (n * tiles)
    turns = max(1.0, passes) * parts
    tables = len(x.tables)
    acts = Moved(used if by_rows else 1, sizes.act, int(k * width(x.a)))
    weights = _weight_moved(x, n, k, 1 if by_rows else used)
    small = _tables_moved(x, n, k, weights.count)
    work = MatmulShape(m, n, k, x.a, x.b, accumulate=parts > 1)
    product_ns, rounding_ns = dpu_ns(platform, work), _rounding_ns(m, n, sizes, machine) / parts
    again = (acts,) if parts > 1 else ()
    first_ns = machine.move_ns(acts, weights, *small)
    pipeline = Pipeline(
        first_ns=first_ns,
        steps=turns,
        load_ns=machine.move_ns(weights, *small, *again),
        work_ns=product_ns + rounding_ns,
        store_ns=machine.move_ns(Moved(used, sizes.out, int(n * width(x.out)))) / parts,
        overlaps=sizes.doubled <= machine.cmx_bytes,
    )
    hidden = 0.0 if sizes.doubled + sizes.act > machine.cmx_bytes else first_ns * (groups - 1)
    steps = groups * -(-column_blocks // (1 if by_rows else tiles)) * parts
    stores = steps * used / parts
    loads = steps * weights.count * (1 + tables) + acts.count * (steps if parts > 1 else groups)
    one = Price(
        work_ns=groups * pipeline.ns - hidden,
        dma_ns=groups * pipeline.dma_ns,
        dpu_ns=groups * turns * product_ns,
        shave_ns=groups * turns * rounding_ns,
        transfers=loads + stores,
        products=steps * used,
        invocations=stores if sizes.total else 0.0,
        ahead_ns=first_ns - machine.move_ns(acts),
        tail_ns=product_ns + rounding_ns + pipeline.store_ns,
    )
    return one if x.batch == 1 else one.times(x.batch)


def _weight_moved(x: MatMulProblem, n: int, k: int, count: int) -> Moved:
    """Return the loads of a block of b."""
    nbytes = int(n * k * width(x.b))
    if x.b_by_columns:
        return Moved(count, nbytes, nbytes if n == x.n else int(n * width(x.b)))
    return Moved(count, nbytes, nbytes if k == x.k else int(k * width(x.b)))


def _tables_moved(x: MatMulProblem, n: int, k: int, count: int) -> list[Moved]:
    """Return the loads of a block's scales and zero points: few bytes of each row if b is cut."""
    groups = -(-k // x.group) if x.group else 0
    rows = [min(groups, of_all) * size for of_all, size in x.tables]
    return [Moved(count, n * row, n * row if k == x.k else row) for row in rows]


def _rounding_ns(m: int, n: int, sizes: _Sizes, machine: Machine) -> float:
    """Return the time of rounding the f32 sum to the result's type."""
    if not sizes.total:
        return 0.0
    return shave_ns(machine.platform, KernelCounts(m, ((n, 32), (n, 16)), (), 0))
