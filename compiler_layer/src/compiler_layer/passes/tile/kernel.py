"""Blocks of SHAVE kernels: complete rows, cut along the outer dimensions of the domain.

A row that is too wide for CMX is cut into ranges of columns if columns are independent: logits of
a large vocabulary are scaled or capped this way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from compiler_layer.dialects.ov.types import Shape
from compiler_layer.errors import DoesNotFit
from compiler_layer.passes.tile.machine import Machine, Moved, Pipeline, Price, cuts, width
from compiler_layer.schedule.unroll.kernel import joined_axes
from driver_layer.abi.cost import KernelCounts, kernel_work, shave_ns
from driver_layer.abi.shave import ACROSS_COLUMNS, GRID_DIMS, MAX_ELEMENTS, Instruction

_MANY = 400
"""Number of candidates beyond which a dimension's list of cuts is thinned out."""

_GRAIN = 64
"""Granularity of ranges of columns: complete DMA words, even for one-byte elements."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand over the domain; dimensions of 1 where it repeats."""

    shape: Shape
    element: str


@dataclass(frozen=True, slots=True)
class KernelProblem:
    """A program over a domain; operands have the domain's rank."""

    domain: Shape
    program: tuple[Instruction, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """The block of the domain that a tile computes at a time."""

    block: Shape
    tiles: int


@cache
def choose_kernel(x: KernelProblem, machine: Machine) -> KernelChoice:
    """Choose the block of a kernel.

    The outer dimensions of a block must fit the dimensions of a kernel's grid; excess dimensions
    are cut to 1.

    Raises:
        DoesNotFit: one row does not fit CMX, and must not be cut.
    """
    best: tuple[float, KernelChoice] | None = None
    shapes = [one.shape for one in (*x.inputs, *x.outputs)]
    for block in _blocks(x, _widths(x, machine)):
        if _need(x, block) > machine.cmx_bytes or math.prod(block) > MAX_ELEMENTS:
            continue
        if len(joined_axes(block, shapes)) > GRID_DIMS:
            continue
        for tiles in machine.tile_counts():
            choice = KernelChoice(block, tiles)
            ns = price_kernel(x, choice, machine).ns
            if best is None or ns < best[0]:
                best = (ns, choice)
    if best is None:
        need = _need(x, _one_row(x))
        raise DoesNotFit(f"a kernel with rows of {x.domain[-1]}", need, machine.cmx_bytes)
    return best[1]


def _widths(x: KernelProblem, machine: Machine) -> list[int]:
    """Return the candidate numbers of columns: all, or fewer if no complete row fits."""
    row = x.domain[-1]
    across_columns = any(instruction.op in ACROSS_COLUMNS for instruction in x.program)
    if across_columns or _need(x, _one_row(x)) <= machine.cmx_bytes:
        return [row]
    return list(cuts(row, _GRAIN))


def _one_row(x: KernelProblem) -> Shape:
    return (*(1 for _ in x.domain[:-1]), x.domain[-1])


def _blocks(x: KernelProblem, widths: list[int]) -> Iterator[Shape]:
    """Yield blocks with all combinations of cuts of the dimensions."""
    sizes = [*(list(cuts(d)) for d in x.domain[:-1]), widths]
    while math.prod(map(len, sizes)) > _MANY:
        longest = max(range(len(sizes)), key=lambda axis: len(sizes[axis]))
        sizes[longest] = [*sizes[longest][:-1:2], sizes[longest][-1]]
    yield from itertools.product(*sizes)


def _part(operand: Operand, block: Shape) -> Shape:
    return tuple(1 if d == 1 else size for d, size in zip(operand.shape, block, strict=True))


def _need(x: KernelProblem, block: Shape) -> int:
    """Return the bytes of CMX that a block needs."""
    operands = (*x.inputs, *x.outputs)
    return sum(int(math.prod(_part(one, block)) * width(one.element)) for one in operands)


def price_kernel(x: KernelProblem, choice: KernelChoice, machine: Machine) -> Price:
    """Price a choice."""
    block, tiles = choice.block, choice.tiles
    counts = [-(-d // size) for d, size in zip(x.domain, block, strict=True)]
    total = math.prod(counts)
    used, steps = min(tiles, total), -(-total // tiles)
    loads = [_moved(one, block, _reloads(one, counts) / steps) for one in x.inputs]
    stores = [_moved(one, block, used) for one in x.outputs]
    work_ns = shave_ns(
        machine.platform, _row_work(x, block[-1])._replace(rows=math.prod(block[:-1]))
    )
    load_ns = machine.move_ns(*loads)
    pipeline = Pipeline(
        first_ns=load_ns,
        steps=steps,
        load_ns=load_ns,
        work_ns=work_ns,
        store_ns=machine.move_ns(*stores),
        overlaps=2 * _need(x, block) <= machine.cmx_bytes,
    )
    transfers = sum(_reloads(one, counts) for one in x.inputs) + total * len(x.outputs)
    return Price(
        work_ns=pipeline.ns,
        dma_ns=pipeline.dma_ns,
        dpu_ns=0.0,
        shave_ns=steps * work_ns,
        transfers=transfers,
        products=0.0,
        invocations=total,
        tail_ns=work_ns + pipeline.store_ns,
    )


@cache
def _row_work(x: KernelProblem, columns: int) -> KernelCounts:
    """Return the work of one row of a block, whatever the number of rows."""
    windows = [(min(columns, one.shape[-1]), one.element) for one in (*x.inputs, *x.outputs)]
    return kernel_work(x.program, 1, windows)


def _reloads(operand: Operand, counts: list[int]) -> int:
    """Return a part's number of loads; blocks that differ only where it repeats share a load."""
    varying = [axis for axis, d in enumerate(operand.shape) if d > 1 and counts[axis] > 1]
    return math.prod(counts[: varying[-1] + 1]) if varying else 1


def _moved(operand: Operand, block: Shape, count: float) -> Moved:
    part = _part(operand, block)
    nbytes = int(math.prod(part) * width(operand.element))
    return Moved(max(1, math.ceil(count)), nbytes, int(part[-1] * width(operand.element)))
