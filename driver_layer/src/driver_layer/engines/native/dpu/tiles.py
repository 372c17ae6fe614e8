"""Products of many rows in tile registers.

As ``gemm``, but sums are registers 32 by 32 at a time, and products so fast that bringing operands
into place would take longer: weights are packed once for 512 rows, activations taken once for 512
columns. f16 operands are multiplied as sums of two bf16 (``Flavour.HALVES``, ``Flavour.PAIRS``):
tile registers know no other floats, and their products of bf16 are exact.

Block by block of k, some rows of activations after the other meet all packed weights: those of a
pair of vectors of columns stay in the first cache meanwhile, the rows in the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

from llvmlite.ir import IRBuilder

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.activations import PITCH, UNITS, Activations
from driver_layer.engines.native.dpu.finish import Span, Tile, finish
from driver_layer.engines.native.dpu.flavours import Flavour, tile_flavour_of
from driver_layer.engines.native.dpu.pack import Block, Packer, head_vectors, square_steps
from driver_layer.engines.native.dpu.problem import MANY_ROWS, NIBBLES, Choice, Layout, Problem
from driver_layer.engines.native.dpu.rows import Row, widen_row
from driver_layer.engines.native.dpu.task import Task
from driver_layer.engines.native.dpu.tile_registers import (
    ROW_BYTES,
    ROWS,
    add_products,
    clear_tile,
    configured,
    load_tile,
    store_tile,
    stream_tile,
)
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.jit.emitter import F32, I32, I64, Emitter, Value
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.kernels import KernelSpec

COLUMNS = 512
"""Columns for which activations are taken once."""

_ROWS = 512
"""Rows for which weights are packed once."""
_STRIP = 128
"""Rows of activations at a time: with sums and packed weights they fit into the second cache."""
_VECTORS = COLUMNS // ROWS
_PITCH = 4 * COLUMNS + 64
"""Bytes from row to row of sums; no power of two, whose lines would evict each other."""

_UNITS_BYTES = UNITS * ROW_BYTES
"""Packed units of a vector of columns, of one part of the weights."""

_ACTS, _WEIGHTS = (4, 5), (6, 7)
"""Tile registers of operands; the four before them hold sums."""


def choose(problem: Problem, host: Host) -> Choice | None:
    """Give the kernel, if it can compute the problem."""
    if not host.has_tiles or problem.rows != MANY_ROWS or problem.layout is Layout.OTHER:
        return None
    if problem.weight in NIBBLES and problem.group % 2:
        return None
    flavour = tile_flavour_of(problem, host)
    if flavour is None:
        return None
    spec = KernelSpec(f"dpu tiles {problem.key}", partial(_write, problem, flavour))
    size = _Places(problem, flavour).end
    return Choice(spec, lambda m, n, k: size, columns=COLUMNS)


def _write(problem: Problem, flavour: Flavour, host: Host) -> str:
    e = Emitter(host)
    with configured(e):
        _Tiles(problem, flavour, e).write()
    return e.finish()


class _Places:
    """Where things lie in scratch: offsets in bytes."""

    def __init__(self, problem: Problem, flavour: Flavour) -> None:
        self.head = head_vectors(problem, flavour) * ROW_BYTES
        self.run = self.head + _UNITS_BYTES * flavour.weight_parts
        """Bytes of a vector of columns, packed."""
        self.scales = _rounded(Activations.size(flavour, _STRIP))
        self.sums = self.scales + 4 * COLUMNS
        self.packed = self.sums + _ROWS * _PITCH
        self.end = self.packed + _VECTORS * self.run


@dataclass(frozen=True, slots=True)
class _Place:
    """Where some tiles of sums belong."""

    row: Value
    """The first, in the strip of activations."""
    vector: Value
    """The first of packed columns."""
    sums: Value
    """The address of their corner."""


class _Tiles:
    """One kernel as it is written."""

    def __init__(self, problem: Problem, flavour: Flavour, e: Emitter) -> None:
        self.problem, self.flavour, self.e, self.b = problem, flavour, e, e.b
        self.task = Task(e)
        self.places = places = _Places(problem, flavour)
        self.acts = Activations(problem, flavour, self.task, _STRIP)
        self.packer = Packer(problem, flavour, self.task, _UNITS_BYTES)
        self.scales, self.sums, self.packed = (
            e.at(e.scratch, place) for place in (places.scales, places.sums, places.packed)
        )
        self.fresh = e.room(4 * ROWS * ROW_BYTES)
        """Sums of a block, as registers leave them."""
        self.number = I32 if flavour.whole else F32
        self.in_registers = not problem.group and not flavour.whole
        """Whether sums stay in tile registers from block to block, and are scaled in the end."""
        _, step = square_steps(problem, e.lanes)
        self.step = max(step, ROWS * flavour.per_unit)
        """Blocks are filled up to as many k."""

    def write(self) -> None:
        """Write all of it."""
        e, b, task = self.e, self.b, self.task
        with (
            e.loop(0, task[Word.BATCH]) as batch,
            e.loop(0, task[Word.M], _ROWS) as m,
            e.loop(0, task[Word.N], COLUMNS) as n,
        ):
            rows = Span(m, task.least(b.sub(task[Word.M], m), I64(_ROWS)))
            columns = Span(n, task.least(b.sub(task[Word.N], n), I64(COLUMNS)))
            self._sum_up(batch, rows, columns)
            self._finish(batch, rows, columns)

    def _finish(self, batch: Value, rows: Span, columns: Span) -> None:
        e, task, problem = self.e, self.task, self.problem
        whole = self.flavour.whole
        scales = None
        if (whole or self.in_registers) and problem.scale is not DType.UNSET:
            address = task.address(Word.SCALE, (columns.begin, Word.SCALE_N))
            scales = self.scales
            widen_row(e, Row(problem.scale, address, task[Word.SCALE_N], columns.count), scales)
        finish(problem, task, Tile(self.sums, I64(_PITCH), whole, scales), batch, (rows, columns))

    def _sum_up(self, batch: Value, rows: Span, columns: Span) -> None:
        """Sum up block by block of each group."""
        e, b, task = self.e, self.b, self.task
        group_size = task[Word.GROUP] if self.problem.group else task[Word.K]
        length = self._block_length(group_size)
        with e.loop(0, _above(b, task[Word.K], group_size)) as group:
            begin = b.mul(group, group_size)
            end = task.least(b.add(begin, group_size), task[Word.K])
            with e.loop(begin, end, length) as k:
                depth = Span(k, task.least(b.sub(end, k), length))
                self._pack(Block(batch, columns.begin, k, depth.count, group), columns)
                with e.loop(0, rows.count, _STRIP) as strip:
                    count = task.least(b.sub(rows.count, strip), I64(_STRIP))
                    taken = Span(b.add(rows.begin, strip), count)
                    self.acts.take(batch, taken, depth, (ROWS, self.step))
                    self._multiply(Span(strip, count), columns, depth)

    def _block_length(self, group_size: Value) -> Value:
        """As many k as fit into a block, or fewer, so that the last block is no small one."""
        b, task = self.b, self.task
        blocks = _above(b, group_size, I64(UNITS * self.flavour.per_unit))
        return task.rounded(_above(b, group_size, blocks), self.step)

    def _pack(self, block: Block, columns: Span) -> None:
        """Pack all columns' weights of a block, filled up to whole tiles."""
        e, b, task = self.e, self.b, self.task
        per_unit = self.flavour.per_unit
        _, filled = square_steps(self.problem, e.lanes)
        begin = b.sdiv(task.rounded(block.count, filled), I64(per_unit))
        end = b.sdiv(task.rounded(block.count, self.step), I64(per_unit))
        with e.loop(0, _above(b, columns.count, I64(ROWS))) as vector:
            run = self._run(vector)
            n = b.add(columns.begin, b.mul(vector, I64(ROWS)))
            self.packer.pack(Block(block.batch, n, block.k, block.count, block.group), run)
            with e.loop(begin, end) as unit:
                for part in range(self.flavour.weight_parts):
                    offset = b.add(b.mul(unit, I64(ROW_BYTES)), I64(part * _UNITS_BYTES))
                    place = e.at(e.at(run, self.places.head), offset)
                    e.store(e.splat(I32(0), e.lanes), place)

    def _run(self, vector: Value) -> Value:
        return self.e.at(self.packed, self.b.mul(vector, I64(self.places.run)))

    # Products

    def _multiply(self, rows: Span, columns: Span, depth: Span) -> None:
        """Add products of a strip of rows with all packed columns to sums."""
        e, b, task = self.e, self.b, self.task
        units = b.sdiv(task.rounded(depth.count, self.step), I64(self.flavour.per_unit))
        first = b.icmp_signed("==", depth.begin, I64(0))
        base = e.at(self.sums, b.mul(rows.begin, I64(_PITCH)))
        with (
            e.loop(0, columns.count, 2 * ROWS) as column,
            e.loop(0, rows.count, 2 * ROWS) as row,
        ):
            corner = b.add(b.mul(row, I64(_PITCH)), b.mul(column, I64(4)))
            place = _Place(row, b.sdiv(column, I64(ROWS)), e.at(base, corner))
            tall = b.icmp_signed(">", b.sub(rows.count, row), I64(ROWS))
            wide = b.icmp_signed(">", b.sub(columns.count, column), I64(ROWS))
            for is_tall, is_wide in product((True, False), repeat=2):
                fits = b.and_(tall if is_tall else b.not_(tall), wide if is_wide else b.not_(wide))
                with b.if_then(fits):
                    size = 1 + is_tall, 1 + is_wide
                    if self.in_registers:
                        self._add_in_registers(place, units, size, first)
                    else:
                        self._add_from_memory(place, units, size, first)

    def _add_in_registers(
        self, place: _Place, units: Value, size: tuple[int, int], first: Value
    ) -> None:
        """Go on with the sums that are there."""
        e, b = self.e, self.b
        sums = {
            (i, j): e.at(place.sums, ROWS * (_PITCH * i + 4 * j))
            for i, j in product(range(size[0]), range(size[1]))
        }
        with b.if_else(first) as (then, otherwise):
            with then:
                for i, j in sums:
                    clear_tile(e, _sums_tile(i, j))
            with otherwise:
                for (i, j), address in sums.items():
                    load_tile(e, _sums_tile(i, j), address, _PITCH)
        self._sum_up_units(place, units, size)
        for (i, j), address in sums.items():
            store_tile(e, _sums_tile(i, j), address, _PITCH)

    def _add_from_memory(
        self, place: _Place, units: Value, size: tuple[int, int], first: Value
    ) -> None:
        """Scale or correct a block's sums before they are added to those that are there."""
        e, b = self.e, self.b
        tiles = list(product(range(size[0]), range(size[1])))
        for i, j in tiles:
            clear_tile(e, _sums_tile(i, j))
        self._sum_up_units(place, units, size)
        for i, j in tiles:
            corner = e.at(self.fresh, ROW_BYTES * (2 * ROWS * i + j))
            store_tile(e, _sums_tile(i, j), corner, 2 * ROW_BYTES)
        zero = e.splat(self.number(0), e.lanes)
        with e.loop(0, ROWS * size[0]) as i:
            line = e.at(place.sums, b.mul(i, I64(_PITCH)))
            fresh = e.at(self.fresh, b.mul(i, I64(2 * ROW_BYTES)))
            for j in range(size[1]):
                target = e.at(line, ROW_BYTES * j)
                present = b.select(first, zero, e.load(target, self.number, e.lanes))
                total = e.load(e.at(fresh, ROW_BYTES * j), self.number, e.lanes)
                run = self._run(b.add(place.vector, I64(j)))
                e.store(self._sum(total, present, run, b.add(place.row, i)), target)

    def _sum_up_units(self, place: _Place, units: Value, size: tuple[int, int]) -> None:
        """Add a block's products to tile registers."""
        e, b, flavour = self.e, self.b, self.flavour
        runs = [
            e.at(self._run(b.add(place.vector, I64(j))), self.places.head) for j in range(size[1])
        ]
        with e.loop(0, units, ROWS) as unit:
            for weight_part in range(flavour.weight_parts):
                offset = b.add(b.mul(unit, I64(ROW_BYTES)), I64(weight_part * _UNITS_BYTES))
                for j, run in enumerate(runs):
                    load_tile(e, _WEIGHTS[j], e.at(run, offset), ROW_BYTES)
                for act_part in range(flavour.act_parts):
                    for i in range(size[0]):
                        line = self.acts.row(b.add(place.row, I64(ROWS * i)), act_part)
                        stream_tile(e, _ACTS[i], e.at(line, b.mul(unit, I64(4))), PITCH)
                    for i, j in product(range(size[0]), range(size[1])):
                        add_products(e, flavour, _sums_tile(i, j), _ACTS[i], _WEIGHTS[j])

    def _sum(self, total: Value, present: Value, run: Value, row: Value) -> Value:
        e, b, lanes = self.e, self.b, self.e.lanes
        if self.flavour is Flavour.BYTES:
            total = b.add(total, e.load(run, I32, lanes))
            if self.acts.sums_rows:
                act_sum = e.splat(e.load(e.at(self.acts.sums, b.mul(row, I64(4))), I32), lanes)
                factor = e.load(e.at(run, ROW_BYTES), I32, lanes)
                total = b.add(total, b.mul(act_sum, factor))
            return b.add(total, present)
        if self.places.head:
            return e.fma(total, e.load(run, F32, lanes), present)
        return b.fadd(total, present)


def _sums_tile(i: int, j: int) -> int:
    return 2 * i + j


def _rounded(size: int) -> int:
    return -(-size // ROW_BYTES) * ROW_BYTES


def _above(b: IRBuilder, a: Value, divisor: Value) -> Value:
    """A quotient, rounded up."""
    return b.udiv(b.add(a, b.sub(divisor, I64(1))), divisor)
