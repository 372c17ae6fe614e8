"""Sums in tile registers: a strip of activations times packed weights.

Products of 32 rows and 32 columns, a square, are summed in registers. If a block's sums are added
unchanged to those of previous blocks, registers are initialized with the previous sums; otherwise
vector code scales or corrects the sums of each group, and adds them.

The sums of a square are contiguous, in one page: rows of all columns would be on as many pages, for
which processors have too few TLB entries for stores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from driver_layer.engines.native.dpu.activations import Activations
from driver_layer.engines.native.dpu.finish import TaskRange
from driver_layer.engines.native.dpu.flavours import NumberFormat
from driver_layer.engines.native.dpu.task import KernelArguments
from driver_layer.engines.native.dpu.tile_registers import (
    ROW_BYTES,
    ROWS,
    add_products,
    clear_tile,
    load_tile,
    store_tile,
    stream_tile,
)
from driver_layer.engines.native.jit.emitter import F32, I32, I64, Emitter, Value

SIDE = 2 * ROWS
"""Rows and columns of a square."""

SUMS_PITCH = 4 * SIDE
"""Bytes from row to row of a square's sums."""

SQUARE = SIDE * SUMS_PITCH
"""Bytes of a square's sums."""

_FETCHED = 8
"""Lines of sums that are prefetched at each step of k; a block of 128 units has eight steps."""

_ROWS_AT_ONCE = 8
"""Rows of sums in vectors while groups are added; with 32 columns, half of all vectors."""

_ACTS, _WEIGHTS = (4, 5), (6, 7)
"""Tile registers of operands; registers 0 to 3 hold sums."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Packed weights of a block.

    Attributes:
        address: returns the begin of the run of a vector of columns, given by number; heads of the
            block's groups come first (see ``pack.head_vectors``).
        units: bytes from the run's begin to its units.
        lower: bytes from units to those of the weights' lower parts.
        head: bytes of a group's head.
        group: units of a group, padded.
        groups: number of groups in the block.
        count: units of the block, padded.
    """

    address: Callable[[Value], Value]
    units: int
    lower: int
    head: int
    group: Value
    groups: Value
    count: Value


@dataclass(frozen=True, slots=True)
class Strip:
    """A row of squares: its rows, whose activations are in scratch, and its columns."""

    batch: Value
    rows: TaskRange
    columns: TaskRange


@dataclass(frozen=True, slots=True)
class SumAddresses:
    """Addresses of sums."""

    squares: Value
    """Sums of the squares, row by row."""
    fresh: Value
    """Uncorrected sums of a square's groups, as registers leave them."""


Finish = Callable[[Value, Value, tuple[TaskRange, TaskRange]], None]
"""Accepts a batch number, the address of a square's complete sums, and its rows and columns."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A square, or its existing part."""

    vector: Value
    """Number of the first vector of packed columns."""
    sums: Value
    size: tuple[int, int]
    """Number of tiles along rows, and along columns."""

    def tiles(self) -> list[tuple[int, int]]:
        """Return the tiles' indices."""
        return list(product(range(self.size[0]), range(self.size[1])))


class TileSums:
    """Writer of the code that adds a strip's products.

    Args:
        flavour: number format of the operands.
        task: the kernel's arguments.
        acts: activations of the strip.
        corrected: True if sums of a group are scaled or corrected before they are added.
        room: addresses of sums.
        finish: writes the code that outputs a square's complete sums.
    """

    def __init__(
        self,
        flavour: NumberFormat,
        task: KernelArguments,
        acts: Activations,
        corrected: bool,
        room: SumAddresses,
        finish: Finish,
    ) -> None:
        self.flavour, self.acts, self.corrected = flavour, acts, corrected
        self.room, self.finish, self.task = room, finish, task
        self.e, self.b = task.e, task.e.b
        self.number = I32 if flavour.whole else F32

    def add(self, strip: Strip, runs: Runs, line: Value, ends: tuple[Value, Value]) -> None:
        """Add a block's products to a strip's sums, or initialize the sums with them.

        Args:
            strip: rows, whose activations are in scratch, and columns.
            runs: the columns' weights.
            line: number of strips above.
            ends: whether the block is the first, and whether it is the last.
        """
        e, b = self.e, self.b
        first, last = ends
        columns = strip.columns.count
        before = b.mul(line, b.udiv(b.add(columns, I64(SIDE - 1)), I64(SIDE)))
        # Sums of a single block are complete immediately, so that all squares share one place.
        step = b.select(b.and_(first, last), I64(0), I64(SQUARE))
        tall = b.icmp_signed(">", strip.rows.count, I64(ROWS))
        with e.loop(0, columns, SIDE) as column:
            square = b.add(before, b.udiv(column, I64(SIDE)))
            sums = e.at(self.room.squares, b.mul(square, step))
            vector = b.udiv(column, I64(ROWS))
            wide = b.icmp_signed(">", b.sub(columns, column), I64(ROWS))
            for is_tall, is_wide in product((True, False), repeat=2):
                fits = b.and_(tall if is_tall else b.not_(tall), wide if is_wide else b.not_(wide))
                with b.if_then(fits):
                    place = _Place(vector, sums, (1 + is_tall, 1 + is_wide))
                    if self.corrected:
                        self._add_groups(place, runs, first)
                    else:
                        self._go_on(place, runs, first)
            with b.if_then(last):
                count = self.task.least(b.sub(columns, column), I64(SIDE))
                spans = strip.rows, TaskRange(b.add(strip.columns.begin, column), count)
                self.finish(strip.batch, sums, spans)

    def _go_on(self, place: _Place, runs: Runs, first: Value) -> None:
        """Add to previous sums in registers."""
        e = self.e
        sums = {(i, j): _corner(e, place.sums, i, j) for i, j in place.tiles()}
        with self.b.if_else(first) as (then, otherwise):
            with then:
                for i, j in sums:
                    clear_tile(e, _tile(i, j))
            with otherwise:
                for (i, j), address in sums.items():
                    load_tile(e, _tile(i, j), address, SUMS_PITCH)
        self._add_units(place, runs, (I64(0), runs.count))
        for (i, j), address in sums.items():
            store_tile(e, _tile(i, j), address, SUMS_PITCH)

    def _add_groups(self, place: _Place, runs: Runs, first: Value) -> None:
        """Scale or correct the sums of each group, and add them."""
        e, b = self.e, self.b
        with e.loop(0, runs.groups) as group:
            for i, j in place.tiles():
                clear_tile(e, _tile(i, j))
            begin = b.mul(group, runs.group)
            end = b.add(begin, runs.group)
            end = b.select(b.icmp_signed("<", end, runs.count), end, runs.count)
            self._add_units(place, runs, (begin, end))
            fresh = e.at(self.room.fresh, b.mul(group, I64(SQUARE)))
            for i, j in place.tiles():
                store_tile(e, _tile(i, j), _corner(e, fresh, i, j), SUMS_PITCH)
        self._correct(place, runs, first)

    def _correct(self, place: _Place, runs: Runs, first: Value) -> None:
        """Add the groups' sums, scaled or corrected by the columns' heads."""
        e, b, lanes = self.e, self.b, self.e.lanes
        zero = e.splat(self.number(0), lanes)
        runs_of_columns = [runs.address(b.add(place.vector, I64(j))) for j in range(place.size[1])]
        places = list(product(range(_ROWS_AT_ONCE), range(place.size[1])))
        with e.loop(0, ROWS * place.size[0], _ROWS_AT_ONCE) as begin:
            rows = b.mul(begin, I64(SUMS_PITCH))
            lines = [SUMS_PITCH * i + ROW_BYTES * j for i, j in places]
            targets = [e.at(e.at(place.sums, rows), line) for line in lines]
            totals = [
                e.variable(b.select(first, zero, e.load(target, self.number, lanes)))
                for target in targets
            ]
            with e.loop(0, runs.groups) as group:
                head = b.mul(group, I64(runs.head))
                joins = [self._join(e.at(run, head)) for run in runs_of_columns]
                fresh = e.at(e.at(self.room.fresh, b.mul(group, I64(SQUARE))), rows)
                for (i, j), line, total in zip(places, lines, totals, strict=True):
                    added = e.load(e.at(fresh, line), self.number, lanes)
                    total.set(joins[j](added, total.get(), b.add(begin, I64(i))))
            for total, target in zip(totals, targets, strict=True):
                e.store(total.get(), target)

    def _join(self, head: Value) -> Callable[[Value, Value, Value], Value]:
        """Return a function of (a row's new sums, its previous sums, the row) that adds both."""
        e, b, lanes = self.e, self.b, self.e.lanes
        if self.flavour is not NumberFormat.BYTES:
            scales = e.load(head, F32, lanes)
            return lambda total, present, row: e.fma(total, scales, present)
        moved = e.load(head, I32, lanes)
        factor = e.load(e.at(head, ROW_BYTES), I32, lanes) if self.acts.sums_rows else None

        def join(total: Value, present: Value, row: Value) -> Value:
            total = b.add(total, moved)
            if factor is not None:
                act_sum = e.splat(e.load(e.at(self.acts.sums, b.mul(row, I64(4))), I32), lanes)
                total = b.add(total, b.mul(act_sum, factor))
            return b.add(total, present)

        return join

    def _add_units(self, place: _Place, runs: Runs, units: tuple[Value, Value]) -> None:
        """Add the products of a range of units, (begin, end), to tile registers."""
        e, b, flavour = self.e, self.b, self.flavour
        begins = [
            e.at(runs.address(b.add(place.vector, I64(j))), runs.units)
            for j in range(place.size[1])
        ]
        with e.loop(*units, ROWS) as unit:
            self._fetch(place, unit)
            for weight_part in range(flavour.weight_parts):
                offset = b.add(b.mul(unit, I64(ROW_BYTES)), I64(weight_part * runs.lower))
                for j, begin in enumerate(begins):
                    stream_tile(e, _WEIGHTS[j], e.at(begin, offset), ROW_BYTES)
                for act_part in range(flavour.act_parts):
                    for i in range(place.size[0]):
                        line = self.acts.row(I64(ROWS * i), act_part)
                        load_tile(e, _ACTS[i], e.at(line, b.mul(unit, I64(4))), self.acts.pitch)
                    for i, j in place.tiles():
                        add_products(e, flavour, _tile(i, j), _ACTS[i], _WEIGHTS[j])

    def _fetch(self, place: _Place, unit: Value) -> None:
        """Prefetch some of the next square's sums, to which the next products are added."""
        step = self.b.udiv(unit, I64(ROWS))
        lines = self.e.at(place.sums, self.b.mul(step, I64(_FETCHED * ROW_BYTES)))
        for line in range(_FETCHED):
            self.e.prefetch(self.e.at(lines, SQUARE + ROW_BYTES * line), writes=True)


def _tile(i: int, j: int) -> int:
    return 2 * i + j


def _corner(e: Emitter, square: Value, i: int, j: int) -> Value:
    """Return the address of a tile's sums in a square."""
    return e.at(square, ROWS * SUMS_PITCH * i + ROW_BYTES * j)
