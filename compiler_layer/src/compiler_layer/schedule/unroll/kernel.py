"""SHAVE kernels: blocks of the domain, distributed among tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from compiler_layer.codegen import kernel_program
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import Shape
from compiler_layer.errors import UnsupportedModel
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.tasks import Invocation, Region, Step, Transfer, Window
from compiler_layer.schedule.unroll.blocks import blocks
from compiler_layer.schedule.views import View
from driver_layer.abi.shave import GRID_DIMS, Access, Instruction


def unroll_kernel(index: int, op: HardwareOp, kernel: npu.Kernel) -> Iterator[Step]:
    """Run the kernel's program over each block of its domain."""
    assert kernel.tile is not None and kernel.tiles is not None  # noqa: PT018  # the tile pass ran
    domain = kernel.domain
    program = kernel_program(kernel)
    operands = [_ranked(view, len(domain)) for view in op.operands]
    results = [_ranked(view, len(domain)) for view in op.results]
    pending = list(blocks(domain, [int(d) for d in kernel.tile.get_values()]))
    tiles = int_value(kernel.tiles)
    kept: _Loaded = {}
    for first in range(0, len(pending), tiles):
        step = Step(index)
        taken = pending[first : first + tiles]
        kept = _load(step, operands, taken, kept)
        for tile, (begin, shape) in enumerate(taken):
            windows = [
                # Blocks in which an operand repeats have the same offset.
                Window(kept[number, view.block(begin, shape).offset, tile], Access.READ)
                for number, view in enumerate(operands)
            ]
            for view in results:
                part = view.block(begin, shape)
                region = Region.dense(part.buffer.name, part.element, part.shape, (tile,))
                step.stores.append(Transfer(region, part, (tile,)))
                windows.append(Window(region, Access.WRITE))
            step.work.append(invocation(tile, program, shape, windows))
        yield step


_Loaded = dict[tuple[int, int, int], Region]
"""Parts of operands in CMX, by operand, offset in memory, and tile."""


def _load(
    step: Step, operands: Sequence[View], taken: Sequence[tuple[Shape, Shape]], kept: _Loaded
) -> _Loaded:
    """Load the operands of a step's blocks, each to all tiles that read it.

    An operand that the previous step loaded to the same tile is not loaded again.
    """
    loaded: _Loaded = {}
    for number, view in enumerate(operands):
        wanted: dict[tuple[int, Shape], list[int]] = {}
        parts: dict[tuple[int, Shape], View] = {}
        for tile, (begin, shape) in enumerate(taken):
            part = view.block(begin, shape)
            before = kept.get((number, part.offset, tile))
            if before is not None and before.shape == part.shape:
                loaded[number, part.offset, tile] = before
            else:
                wanted.setdefault((part.offset, part.shape), []).append(tile)
                parts[part.offset, part.shape] = part
        for key, readers in wanted.items():
            part, used = parts[key], tuple(readers)
            region = Region.dense(part.buffer.name, part.element, part.shape, used)
            step.loads.append(Transfer(part, region, used))
            loaded |= {(number, part.offset, tile): region for tile in readers}
    return loaded


def _ranked(view: View, rank: int) -> View:
    """Return a view with dimensions of 1 in front, up to a rank."""
    wide = view.reshaped((1,) * (rank - len(view.shape)) + view.shape)
    assert wide is not None  # dimensions of 1 never move elements
    return wide


def invocation(
    tile: int, program: tuple[Instruction, ...], domain: Shape, windows: Sequence[Window]
) -> Invocation:
    """Run a program over a domain; outer dimensions are joined to the three of a grid.

    Each window's region has the domain's rank, with dimensions of 1 where it repeats.

    Raises:
        UnsupportedModel: the windows' dimensions cannot be joined to three.
    """
    groups = joined_axes(domain, [window.region.shape for window in windows])
    if len(groups) > GRID_DIMS:
        raise UnsupportedModel(f"a kernel over {list(domain)} needs a grid of {len(groups)} axes")
    sizes = [math.prod(domain[axis] for axis in group) for group in groups]
    grid = [1] * (GRID_DIMS - len(groups)) + sizes
    fitted = [Window(_grouped(window.region, groups), window.access) for window in windows]
    return Invocation(tile, program, tuple(grid), tuple(fitted))


def joined_axes(domain: Shape, shapes: Sequence[Shape]) -> list[list[int]]:
    """Group the outer dimensions: neighbours that each window covers, or repeats, are joined."""
    groups: list[list[int]] = []
    kinds: list[tuple[bool, ...]] = []
    for axis in range(len(domain) - 1):
        if domain[axis] == 1:
            continue
        kind = tuple(shape[axis] == 1 for shape in shapes)
        if kinds and kinds[-1] == kind:
            groups[-1].append(axis)
        else:
            groups.append([axis])
            kinds.append(kind)
    return groups


def _grouped(region: Region, groups: Sequence[Sequence[int]]) -> Region:
    """Return a region with one dimension per group, and stride 0 where it repeats."""
    shape = [1] * (GRID_DIMS - len(groups))
    strides = [0] * (GRID_DIMS - len(groups))
    for group in groups:
        size = math.prod(region.shape[axis] for axis in group)
        shape.append(size)
        strides.append(region.strides[group[-1]] if size > 1 else 0)
    shape.append(region.shape[-1])
    strides.append(region.strides[-1])
    return Region(region.buffer, region.element, region.offset, tuple(shape), tuple(strides))
