"""Matmuls: blocks of rows, columns and channels, distributed among tiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compiler_layer.codegen.program import ProgramBuilder
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.elements import FOUR_BIT
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.tasks import (
    NO_TABLES,
    MatMulTask,
    Region,
    Step,
    Tables,
    Transfer,
    Window,
    Work,
)
from compiler_layer.schedule.unroll.blocks import ranges
from compiler_layer.schedule.unroll.dma import gather_rows, load_numbers
from compiler_layer.schedule.unroll.kernel import invocation
from compiler_layer.schedule.views import View
from driver_layer.abi.shave import Access

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Matrices:
    """One matmul: a [m, k], b [n, k], out [m, n]; tables, too, if it is quantised.

    The value of a is (a - a_zero) · a_scale. An element of b's view has ``packed`` elements of b;
    scales and zeros are [n, groups].
    """

    a: View
    b: View
    out: View
    scales: View | None
    zeros: View | None
    row_scales: View | None
    group: int
    packed: int
    a_scale: float
    a_zero: int
    number: Region | None = None
    """Index of the matrix in a stack [e, n, k], and in the stacks of its tables, i64 [1] in CMX."""


def unroll_matmul(index: int, op: HardwareOp, matmul: npu.MatMul) -> Iterator[Step]:
    """Yield the steps of a matmul, block by block."""
    assert matmul.tile is not None and matmul.tiles is not None  # noqa: PT018  # the tile pass ran
    m, n, k = (int(d) for d in matmul.tile.get_values())
    tiles = int_value(matmul.tiles)
    by_rows = matmul.split is not None and matmul.split.data == "m"
    planes = _planes(op, matmul)
    if matmul.choices is not None:
        load, numbers = load_numbers(op.operands[-1], tuple(range(tiles)))
        yield Step(index, loads=[load])
        planes = _chosen(op, matmul, numbers)
    for matrices in planes:
        yield from _steps(index, matrices, (m, n, k), tiles, by_rows)


def _planes(op: HardwareOp, matmul: npu.MatMul) -> Iterator[_Matrices]:
    """Yield the matmuls of single matrices that a batched matmul consists of."""
    a, b, *rest = op.operands
    tables = iter(rest)
    scales, zeros, row_scales = (
        None if table is None else next(tables)
        for table in (matmul.scales, matmul.zeros, matmul.row_scales)
    )
    packed = 2 if b.element in FOUR_BIT else 1
    whole = (matmul.a_scale_value, matmul.a_zero_value)
    quantised = (scales, zeros, row_scales, matmul.group, packed, *whole)
    (out,) = op.results
    if int_value(matmul.transpose_a):
        a = a.swapped()
    if not int_value(matmul.transpose_b):
        b = b.swapped()
    if len(b.shape) == 2:
        rows = math.prod(a.shape[:-1])
        flat_a, flat_out = a.reshaped((rows, a.shape[-1])), out.reshaped((rows, out.shape[-1]))
        if flat_a is not None and flat_out is not None:
            yield _Matrices(flat_a, b, flat_out, *quantised)
            return
    outer = out.shape[:-2]
    a = a.broadcast((*outer, *a.shape[-2:]))
    b = b.broadcast((*outer, *b.shape[-2:]))
    for at in itertools.product(*(range(d) for d in outer)):
        planes = [_plane(view, at) for view in (a, b, out)]
        yield _Matrices(planes[0], planes[1], planes[2], *quantised)


def _chosen(op: HardwareOp, matmul: npu.MatMul, numbers: Region) -> Iterator[_Matrices]:
    """Yield the matmuls of planes of a with matrices of a stack."""
    a, b, *tables, _ = op.operands
    scales, zeros = [*tables, None, None][:2]  # zeros exist only with scales
    quantised = (scales, zeros, None, matmul.group, 2 if b.element in FOUR_BIT else 1)
    (out,) = op.results
    for plane in range(out.shape[0]):
        mine, its = _plane(a, (plane,)), _plane(out, (plane,))
        yield _Matrices(mine, b, its, *quantised, 1.0, 0, numbers.rows(0, plane, plane + 1))


def _plane(view: View, at: Sequence[int]) -> View:
    slices = [*(slice(i, i + 1) for i in at), slice(None), slice(None)]
    plane = view.sliced(slices).reshaped(view.shape[-2:])
    assert plane is not None  # dimensions of 1 never move elements
    return plane


def _load(view: View, rows: Range, cols: Range, tiles: tuple[int, ...]) -> tuple[Transfer, Region]:
    """Load a part of a matrix; a dimension of 1 is loaded completely."""
    part = view.block((rows[0], cols[0]), (rows[1] - rows[0], cols[1] - cols[0]))
    region = Region.dense(view.buffer.name, view.element, part.shape, tiles)
    return Transfer(part, region, tiles), region


def _load_dense(
    view: View, rows: Range, cols: Range, tiles: tuple[int, ...]
) -> tuple[Transfer, Region]:
    """Load a part of a matrix in its layout: the DPU reads columns as well as rows."""
    by_columns = view.strides[0] == view.itemsize < view.strides[1]
    if not by_columns:
        return _load(view, rows, cols, tiles)
    load, region = _load(view.swapped(), cols, rows, tiles)
    return load, region.swapped()


@dataclass(frozen=True, slots=True)
class WeightTile:
    """A block of b in CMX, with its scales and zero points."""

    region: Region
    tables: Tables = NO_TABLES


def _load_weight(
    x: _Matrices, cols: Range, part: Range, tiles: tuple[int, ...]
) -> tuple[list[Transfer], WeightTile]:
    """Load columns ``cols`` and channels ``part`` of b; both count elements."""
    begin, end = part[0] // x.packed, -(-part[1] // x.packed)
    number = x.number
    if number is None:
        load, region = _load_dense(x.b, cols, (begin, end), tiles)
    else:
        load, region = gather_rows(x.b, cols, tiles, number)
    loads, tables = [load], dict[str, Region]()
    groups = (part[0] // x.group, -(-part[1] // x.group))
    for name, view in (("scales", x.scales), ("zeros", x.zeros)):
        if view is not None:
            if number is None:
                load, tables[name] = _load(view, cols, groups, tiles)
            else:
                load, tables[name] = gather_rows(view, cols, tiles, number)
            loads.append(load)
    group = min(x.group, part[1] - part[0])
    found = Tables(tables.get("scales"), tables.get("zeros"), group=group)
    return loads, WeightTile(region, found if tables else NO_TABLES)


def _steps(
    index: int, x: _Matrices, block: tuple[int, int, int], tiles: int, by_rows: bool
) -> Iterator[Step]:
    """Compute different rows, or columns, on each tile; the other operand is broadcast to all."""
    m, n, k = block
    channels, all_tiles = ranges(x.a.shape[1], k), tuple(range(tiles))
    for rows in _groups(ranges(x.a.shape[0], m), tiles if by_rows else 1):
        acts: _Acts = {}
        for columns in _groups(ranges(x.b.shape[-2], n), 1 if by_rows else tiles):
            pairs = list(itertools.product(rows, columns))  # one for each tile
            used = tuple(range(len(pairs)))
            outs = [_Out(x, *pair, tile, len(channels) > 1) for tile, pair in enumerate(pairs)]
            for number, part in enumerate(channels):
                step = Step(index)
                for tile, mine in enumerate(rows):
                    _load_act(step, x, mine, part, (tile,) if by_rows else all_tiles, acts)
                weights: dict[Range, WeightTile] = {}
                for tile, mine in enumerate(columns):
                    loads, weights[mine] = _load_weight(x, mine, part, used if by_rows else (tile,))
                    step.loads += loads
                for (its_rows, its_columns), out in zip(pairs, outs, strict=True):
                    act, weight = acts[its_rows, part], weights[its_columns]
                    step.work.append(out.product(act, weight, number))
                if part == channels[-1]:
                    for out in outs:
                        out.finish(step)
                yield step
            if len(channels) > 1:
                acts.clear()  # no tile's CMX holds all channels at once


def _groups(blocks: Sequence[Range], size: int) -> Iterator[Sequence[Range]]:
    return (blocks[first : first + size] for first in range(0, len(blocks), size))


@dataclass(frozen=True, slots=True)
class _Act:
    """A block of a in CMX, with its row scales."""

    region: Region
    row_scales: Region | None


_Acts = dict[tuple[Range, Range], _Act]
"""Blocks of a in CMX, by rows and channels."""


def _load_act(
    step: Step, x: _Matrices, rows: Range, part: Range, tiles: tuple[int, ...], acts: _Acts
) -> None:
    """Load a block of a, unless CMX has it."""
    if (rows, part) in acts:
        return
    load, region = _load(x.a, rows, part, tiles)
    step.loads.append(load)
    row_scales = None
    if x.row_scales is not None:
        load, row_scales = _load(x.row_scales, rows, (0, 1), tiles)
        step.loads.append(load)
    acts[rows, part] = _Act(region, row_scales)


class _Out:
    """A block of the result; several blocks of channels are summed in f32."""

    def __init__(self, x: _Matrices, rows: Range, cols: Range, tile: int, partial: bool) -> None:
        self._view = x.out.sliced([slice(*rows), slice(*cols)])
        self._tile = tile
        self._a_scale, self._a_zero = x.a_scale, x.a_zero
        shape = (rows[1] - rows[0], cols[1] - cols[0])
        name = x.out.buffer.name
        self._final = Region.dense(name, x.out.element, shape, (tile,))
        converts = partial and x.out.element != "f32"
        self._sum = Region.dense(f"{name}.sum", "f32", shape, (tile,)) if converts else self._final

    def product(self, act: _Act, weight: WeightTile, number: int) -> MatMulTask:
        """Multiply one block of channels, and add the result to the earlier sums."""
        tables = replace(weight.tables, row_scales=act.row_scales, zero=self._a_zero)
        return matrix_product(
            self._tile,
            act.region,
            replace(weight, tables=tables),
            self._sum,
            self._a_scale,
            accumulate=number > 0,
        )

    def finish(self, step: Step) -> None:
        """Round the sum to the result's type, and store the block to DDR."""
        if self._sum is not self._final:
            step.work.append(convert(self._tile, self._sum, self._final))
        step.stores.append(Transfer(self._final, self._view, (self._tile,)))


def matrix_product(
    tile: int,
    act: Region,
    weight: WeightTile,
    out: Region,
    alpha: float = 1.0,
    accumulate: bool = False,
) -> MatMulTask:
    """Return a workload over single matrices, as a batch of one."""

    def batched(region: Region) -> Region:
        shape, strides = (1, *region.shape), (0, *region.strides)
        return Region(region.buffer, region.element, region.offset, shape, strides)

    stored = batched(weight.region)
    return MatMulTask(tile, batched(act), stored, batched(out), alpha, accumulate, weight.tables)


def convert(tile: int, source: Region, target: Region) -> Work:
    """Convert a matrix to another element type."""
    program = ProgramBuilder()
    program.store(1, program.load(0))
    windows = [Window(source, Access.READ), Window(target, Access.WRITE)]
    return invocation(tile, program.finish(), target.shape, windows)
