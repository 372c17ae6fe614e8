"""Matmuls of many rows in tile registers.

The scheme is that of ``gemm``, but the sums of 32 rows by 32 columns are in registers, and products
are so fast that preparing operands would take longer. So weights are packed once for 512 rows, and
activations converted once for 1,024 columns. f16 operands are multiplied as sums of two bf16
(``NumberFormat.HALVES``, ``NumberFormat.PAIRS``): tile registers support no other floats, and
multiply bf16 exactly. ``tile_sums`` writes the sums.

Block by block of k, each strip of activations is multiplied with all packed weights: its 32 rows
stay in the first-level cache, weights in the second; sums are prefetched before they are loaded.
"""

from __future__ import annotations

from driver_layer.engines.native.dpu.activations import Activations
from driver_layer.engines.native.dpu.finish import SumTile, TaskRange, finish
from driver_layer.engines.native.dpu.flavours import NumberFormat, tile_flavour_of
from driver_layer.engines.native.dpu.pack import PackedBlock, Packer, head_vectors, square_steps
from driver_layer.engines.native.dpu.problem import (
    MANY_ROWS,
    NIBBLES,
    MatmulKernel,
    MatmulProblem,
    WeightLayout,
)
from driver_layer.engines.native.dpu.tile_registers import ROW_BYTES, ROWS, configured
from driver_layer.engines.native.dpu.tile_sums import (
    SIDE,
    SQUARE,
    SUMS_PITCH,
    Runs,
    Strip,
    SumAddresses,
    TileSums,
)
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import I32, I64, Emitter, Value
from driver_layer.engines.native.jit.host import Host

COLUMNS = 1024
"""Columns for which activations are converted once."""

_ROWS = 512
"""Rows for which weights are packed once."""

_UNITS = 320
"""Maximum units of a block's row, in all its parts: a strip's fit into the first-level cache."""

_VECTORS = COLUMNS // ROWS


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if not host.has_tiles or problem.rows != MANY_ROWS or problem.layout is WeightLayout.OTHER:
        return None
    if problem.weight in NIBBLES and problem.group % 2:
        return None
    flavour = tile_flavour_of(problem, host)
    if flavour is None:
        return None
    size = _Places(problem, flavour).end
    return MatmulKernel(_Tiles.spec(problem), lambda m, n, k: size, columns=COLUMNS)


class _Places:
    """Layout of scratch: offsets in bytes."""

    def __init__(self, problem: MatmulProblem, flavour: NumberFormat) -> None:
        self.units = _UNITS // flavour.act_parts // ROWS * ROWS
        """Maximum units of a block."""
        self.taken = SIDE * 4 * flavour.act_parts
        """Bytes of a strip's units at one k."""
        self.part = self.units * ROW_BYTES
        """Bytes of packed units of a vector of columns, for one part of the weights."""
        self.head = head_vectors(problem, flavour) * ROW_BYTES
        most = self.units // ROWS if problem.group else 1
        self.heads = self.head * most
        """Bytes of the heads of the maximum number of groups of a block."""
        self.run = self.heads + self.part * flavour.weight_parts
        """Bytes of a packed vector of columns."""
        self.scales = _rounded(Activations.size(flavour, SIDE, self.units))
        self.sums = self.scales + 4 * COLUMNS
        self.fresh = self.sums + 4 * _ROWS * COLUMNS
        self.packed = self.fresh + most * SQUARE
        self.end = self.packed + _VECTORS * self.run


class _Tiles(KernelWriter):
    """Writer of one kernel."""

    family = "tiles"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        flavour = tile_flavour_of(problem, e.host)
        assert flavour is not None  # else not chosen
        self.flavour = flavour
        self.places = places = _Places(problem, flavour)
        self.acts = Activations(flavour, self.task, SIDE, places.units)
        self.packer = Packer(flavour, self.task, places.part)
        self.packed = e.at(e.scratch, places.packed)
        self.corrected = flavour.whole or bool(problem.group and places.head)
        """True if groups' sums are scaled or corrected before they are added, not at the end."""
        scaled = problem.column_scales and (flavour.whole or not self.corrected)
        scales = e.at(e.scratch, places.scales)
        self.scales = scales if scaled else None
        """Address of the scales of complete sums."""
        self.common_scales = scales if problem.common_scales else None
        """Address of the scales of a block's activations."""
        room = SumAddresses(e.at(e.scratch, places.sums), e.at(e.scratch, places.fresh))
        self.products = TileSums(flavour, self.task, self.acts, self.corrected, room, self._finish)
        self.group = self.task[Word.GROUP] if problem.group else self.task[Word.K]
        _, step = square_steps(problem, e.lanes)
        self.step = max(step, ROWS * flavour.per_unit)
        """Multiple of k to which blocks are padded."""

    def write(self) -> None:
        """Write the kernel's body."""
        with configured(self.e):
            super().write()

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry."""
        e, b, task = self.e, self.b, self.task
        with e.loop(0, task[Word.M], _ROWS) as m, e.loop(0, task[Word.N], COLUMNS) as n:
            rows = TaskRange(m, task.least(b.sub(task[Word.M], m), I64(_ROWS)))
            columns = TaskRange(n, task.least(b.sub(task[Word.N], n), I64(COLUMNS)))
            if self.scales is not None:
                self.widen_scales(columns, self.scales)
            self._sum_up(batch, rows, columns)

    def _sum_up(self, batch: Value, rows: TaskRange, columns: TaskRange) -> None:
        """Sum block by block: each is some complete groups, or a part of one."""
        e, b, task = self.e, self.b, self.task
        section, length = self._lengths()
        with e.loop(0, task[Word.K], section) as begin:
            end = task.least(b.add(begin, section), task[Word.K])
            with e.loop(begin, end, length) as k:
                depth = TaskRange(k, task.least(b.sub(end, k), length))
                runs = self._pack(batch, columns, depth)
                if self.common_scales is not None:
                    self.take_common_scales(depth, self.common_scales)
                first = b.icmp_signed("==", k, I64(0))
                last = b.icmp_signed("==", b.add(k, depth.count), task[Word.K])
                with e.loop(0, rows.count, SIDE) as above:
                    count = task.least(b.sub(rows.count, above), I64(SIDE))
                    strip = Strip(batch, TaskRange(b.add(rows.begin, above), count), columns)
                    multiples = ROWS, self.step
                    self.acts.take(batch, strip.rows, depth, multiples, self.common_scales)
                    self.products.add(strip, runs, b.udiv(above, I64(SIDE)), (first, last))

    def _finish(self, batch: Value, sums: Value, spans: tuple[TaskRange, TaskRange]) -> None:
        """Store the complete sums of a square."""
        scales = self.scales
        if scales is not None:
            within = self.b.urem(spans[1].begin, I64(COLUMNS))
            scales = self.e.at(scales, self.b.mul(within, I64(4)))
        tile = SumTile(sums, I64(SUMS_PITCH), self.flavour.whole, scales)
        finish(self.task, tile, batch, spans)

    def _lengths(self) -> tuple[Value, Value]:
        """Return k of a section, which ends with a group, and of a block, a part of the section.

        Groups that need no padding share a block, as many as fit. Parts of a longer group have
        nearly the same length, so that the last is not small.
        """
        b, task = self.b, self.task
        most = I64(self.places.units * self.flavour.per_unit // self.step * self.step)
        group = self.group
        parts = task.parts(group, most)
        part = task.rounded(task.parts(group, parts), self.step)
        if not self.problem.group:
            return group, part
        whole = b.icmp_signed("==", b.urem(group, I64(self.step)), I64(0))
        # The first-level cache must hold the groups' new sums, too.
        taken = b.mul(b.udiv(group, I64(self.flavour.per_unit)), I64(self.places.taken))
        fits = b.udiv(I64(self.places.units * self.places.taken), b.add(taken, I64(SQUARE)))
        together = b.select(whole, fits, I64(1))
        many = b.icmp_signed(">", together, I64(1))
        section = b.mul(group, b.select(many, together, I64(1)))
        return section, b.select(many, section, part)

    def _pack(self, batch: Value, columns: TaskRange, depth: TaskRange) -> Runs:
        """Pack all columns' weights of a block, each group padded to complete tiles."""
        e, b, task, places = self.e, self.b, self.task, self.places
        per_unit = I64(self.flavour.per_unit)
        groups = task.parts(depth.count, self.group)
        before = b.udiv(depth.begin, self.group)
        count = b.udiv(task.rounded(depth.count, self.step), per_unit)
        units_of_group = b.udiv(self.group, per_unit)
        with (
            e.loop(0, task.parts(columns.count, I64(ROWS))) as vector,
            e.loop(0, groups) as group,
        ):
            n = b.add(columns.begin, b.mul(vector, I64(ROWS)))
            within = b.mul(group, self.group)
            left = task.least(b.sub(depth.count, within), self.group)
            block = PackedBlock(batch, n, b.add(depth.begin, within), left, b.add(before, group))
            run = self._run(vector)
            unit = b.mul(group, units_of_group)
            units = e.at(e.at(run, places.heads), b.mul(unit, I64(ROW_BYTES)))
            self.packer.pack(block, e.at(run, b.mul(group, I64(places.head))), units)
            self._fill(units, left)
        group_units = b.select(b.icmp_signed(">", groups, I64(1)), units_of_group, count)
        return Runs(self._run, places.heads, places.part, places.head, group_units, groups, count)

    def _fill(self, units: Value, count: Value) -> None:
        """Pad units of ``count`` k with zeros to a complete tile."""
        e, b, task = self.e, self.b, self.task
        per_unit = I64(self.flavour.per_unit)
        _, filled = square_steps(self.problem, e.lanes)
        begin = b.udiv(task.rounded(count, filled), per_unit)
        with e.loop(begin, b.udiv(task.rounded(count, self.step), per_unit)) as unit:
            for part in range(self.flavour.weight_parts):
                offset = b.add(b.mul(unit, I64(ROW_BYTES)), I64(part * self.places.part))
                e.store(e.splat(I32(0), e.lanes), e.at(units, offset))

    def _run(self, vector: Value) -> Value:
        return self.e.at(self.packed, self.b.mul(vector, I64(self.places.run)))


def _rounded(size: int) -> int:
    return -(-size // ROW_BYTES) * ROW_BYTES
