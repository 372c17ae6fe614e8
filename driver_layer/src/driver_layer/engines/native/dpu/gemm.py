"""Matmuls of many rows, or with weights along n: operands packed, sums in registers.

Sums of some rows and columns form a tile in scratch. For each block of k that fits the caches,
weights are packed (``pack``), activations stored contiguously as units, and products added to the
tile: for a few rows and up to three vectors of columns at a time, whose sums are in registers.

Packing weights that are used for 128 rows costs about a tenth of the products. If a task's packed
weights fit into ``KEPT_BYTES``, they can stay in scratch for its further rows, and for following
tasks that request it (``words.Reuse``).
"""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.activations import PITCH, UNITS, Activations
from driver_layer.engines.native.dpu.finish import SumTile, TaskRange, finish
from driver_layer.engines.native.dpu.flavours import NumberFormat, dot, flavour_of, nothing
from driver_layer.engines.native.dpu.pack import (
    PackedBlock,
    Packer,
    head_vectors,
    square_steps,
)
from driver_layer.engines.native.dpu.problem import (
    MANY_ROWS,
    NIBBLES,
    MatmulKernel,
    MatmulProblem,
    WeightLayout,
)
from driver_layer.engines.native.dpu.words import Reuse, Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import (
    F32,
    I1,
    I32,
    I64,
    Emitter,
    Value,
    Variable,
)
from driver_layer.engines.native.jit.host import Host, Isa

KEPT_BYTES = 2 << 20
"""Maximum size of packed weights that stay in scratch for following tasks."""

_ROWS = 128
"""Maximum rows of a tile."""
_VECTORS = 12
"""Maximum vectors of columns of a tile."""


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if host.lanes == 1 or problem.layout is WeightLayout.OTHER:
        return None
    if problem.weight in NIBBLES and problem.group % 2:
        return None
    flavour = flavour_of(problem, host)
    if flavour is None:
        return None
    sizes = _Sizes(problem, flavour, host.lanes)
    return MatmulKernel(_Gemm.spec(problem), sizes.scratch, sizes.keeps)


class _Sizes:
    """Layout of scratch: offsets in bytes."""

    def __init__(self, problem: MatmulProblem, flavour: NumberFormat, lanes: int) -> None:
        self.problem, self.flavour = problem, flavour
        self.line = 4 * lanes
        self.lanes = lanes
        self.head = head_vectors(problem, flavour)
        _, self.step = square_steps(problem, lanes)
        self.block = UNITS * flavour.per_unit
        """Maximum k of a block."""
        self.rows = _ROWS if problem.rows == MANY_ROWS else 8
        self.tile_pitch = self.line * _VECTORS + 64
        self.scales = Activations.size(flavour, self.rows)
        self.tile = self.scales + self.line * _VECTORS
        self.packed = self.tile + self.rows * self.tile_pitch

    def keeps(self, n: int, k: int, group: int) -> bool:
        """Return whether all packed weights stay in scratch."""
        group = group if self.problem.group else k
        length = min(group, k, self.block)
        filled = -(-length // self.step) * self.step // self.flavour.per_unit
        blocks = -(-k // min(group, k)) * -(-min(group, k) // self.block)
        size = blocks * -(-n // self.lanes) * self.line * (self.head + filled)
        return self.problem.rows == MANY_ROWS and size <= KEPT_BYTES

    def scratch(self, m: int, n: int, k: int) -> int:
        """Return the bytes of scratch, which do not depend on the sizes."""
        block = _VECTORS * self.line * (self.head + UNITS)
        return self.packed + (KEPT_BYTES if self.problem.rows == MANY_ROWS else block)


@dataclass(frozen=True, slots=True)
class _Packed:
    """A packed block of a tile's weights."""

    runs: Value
    run_bytes: Value
    vectors: Value
    units: Value
    first: Value
    """True if the tile has no sums yet."""


class _Gemm(KernelWriter):
    """Writer of one kernel."""

    family = "gemm"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        flavour = flavour_of(problem, e.host)
        assert flavour is not None  # else not chosen
        self.flavour = flavour
        self.sizes = sizes = _Sizes(problem, flavour, e.lanes)
        wide = e.host.isa >= Isa.AVX512
        self.rows_at_once = min(1 << (problem.rows - 1).bit_length(), 8 if wide else 4)
        self.vectors = 3 if wide else 2
        self.packer = Packer(flavour, self.task)
        self.acts = Activations(flavour, self.task, sizes.rows)
        places = (sizes.scales, sizes.tile, sizes.packed)
        self.scales, self.tile, self.packed = (e.at(e.scratch, place) for place in places)
        self.group = self.task[Word.GROUP] if problem.group else self.task[Word.K]
        self.kept = self._kept()

    def _kept(self) -> Value:
        """Return ``_Sizes.keeps`` at run time; False for a batch, which has several weights."""
        b, task, sizes = self.b, self.task, self.sizes
        if self.problem.rows != MANY_ROWS:
            return I1(0)
        k = task[Word.K]
        group = task.least(self.group, k)
        length = task.rounded(task.least(group, I64(sizes.block)), sizes.step)
        filled = b.add(b.sdiv(length, I64(self.flavour.per_unit)), I64(sizes.head))
        blocks = b.mul(task.parts(k, group), task.parts(group, I64(sizes.block)))
        lines = b.mul(task.parts(task[Word.N], I64(self.e.lanes)), b.mul(blocks, filled))
        fits = b.icmp_signed("<=", b.mul(lines, I64(sizes.line)), I64(KEPT_BYTES))
        alone = b.icmp_signed("==", task[Word.BATCH], I64(1))
        reused = b.icmp_signed("!=", task[Word.REUSE], I64(Reuse.NONE))
        wanted = b.or_(reused, b.icmp_signed(">", task[Word.M], I64(sizes.rows)))
        return b.and_(b.and_(fits, alone), wanted)

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry."""
        e, b, task, sizes = self.e, self.b, self.task, self.sizes
        columns = _VECTORS * e.lanes
        with e.loop(0, task[Word.M], sizes.rows) as m:
            rows = TaskRange(m, task.least(b.sub(task[Word.M], m), I64(sizes.rows)))
            used = e.variable(I64(0))
            with e.loop(0, task[Word.N], columns) as n:
                span = TaskRange(n, task.least(b.sub(task[Word.N], n), I64(columns)))
                self._fill_tile(batch, rows, span, used)
                self._finish(batch, rows, span)

    def _finish(self, batch: Value, rows: TaskRange, columns: TaskRange) -> None:
        whole = self.flavour.whole
        scales = None
        if whole and self.problem.scale is not DType.UNSET:
            scales = self.scales
            self.widen_scales(columns, scales)
        tile = SumTile(self.tile, I64(self.sizes.tile_pitch), whole, scales)
        finish(self.task, tile, batch, (rows, columns))

    def _fill_tile(self, batch: Value, rows: TaskRange, columns: TaskRange, used: Variable) -> None:
        """Sum a tile block by block; ``used`` counts the bytes of kept weights."""
        e, b, task, sizes = self.e, self.b, self.task, self.sizes
        vectors = task.parts(columns.count, I64(e.lanes))
        present = b.icmp_signed("==", task[Word.REUSE], I64(Reuse.PRESENT))
        again = b.or_(b.icmp_signed(">", rows.begin, I64(0)), present)
        present = b.and_(self.kept, again)
        with e.loop(0, task.parts(task[Word.K], self.group)) as group:
            begin = b.mul(group, self.group)
            end = task.least(b.add(begin, self.group), task[Word.K])
            with e.loop(begin, end, sizes.block) as k:
                count = task.least(b.sub(end, k), I64(sizes.block))
                units = b.sdiv(task.rounded(count, sizes.step), I64(self.flavour.per_unit))
                run = b.mul(b.add(units, I64(sizes.head)), I64(sizes.line))
                runs = e.at(self.packed, used.get())
                with b.if_then(b.not_(present)), e.loop(0, vectors) as vector:
                    n = b.add(columns.begin, b.mul(vector, I64(e.lanes)))
                    block = PackedBlock(batch, n, k, count, group)
                    self.packer.pack(block, e.at(runs, b.mul(vector, run)))
                # Activations of the only block are still in scratch from the previous columns.
                only = b.icmp_signed("==", count, task[Word.K])
                there = b.and_(only, b.icmp_signed(">", columns.begin, I64(0)))
                with b.if_then(b.not_(there)):
                    self.acts.take(
                        batch, rows, TaskRange(k, count), (self.rows_at_once, sizes.step)
                    )
                first = b.icmp_signed("==", k, I64(0))
                self._multiply(rows, _Packed(runs, run, vectors, units, first))
                further = b.select(self.kept, b.mul(vectors, run), I64(0))
                used.set(b.add(used.get(), further))

    # Products

    def _multiply(self, rows: TaskRange, packed: _Packed) -> None:
        """Add a block's products to the tile."""
        e, b = self.e, self.b
        panels = self.task.parts(packed.vectors, I64(self.vectors))
        with e.loop(0, panels) as panel:
            # Panels of nearly equal width: a narrow one loads more than it multiplies.
            vector = b.udiv(b.mul(panel, packed.vectors), panels)
            end = b.udiv(b.mul(b.add(panel, I64(1)), packed.vectors), panels)
            width = b.sub(end, vector)
            for count in range(1, self.vectors + 1):
                with (
                    b.if_then(b.icmp_signed("==", width, I64(count))),
                    e.loop(0, rows.count, self.rows_at_once) as row,
                ):
                    self._products(packed, row, vector, count)

    def _products(self, packed: _Packed, row: Value, vector: Value, count: int) -> None:
        """Add the products of some rows with ``count`` vectors of columns."""
        e, b, sizes = self.e, self.b, self.sizes
        sums = [
            [e.variable(nothing(e, self.flavour)) for _ in range(count)]
            for _ in range(self.rows_at_once)
        ]
        acts = self.acts.row(row)
        runs = [
            e.at(packed.runs, b.mul(b.add(vector, I64(i)), packed.run_bytes)) for i in range(count)
        ]
        columns = [e.at(run, sizes.head * sizes.line) for run in runs]
        unroll = min(4 if count == self.vectors else 2, sizes.step // self.flavour.per_unit)
        with e.loop(0, packed.units, unroll) as unit:
            act, place = e.at(acts, b.mul(unit, I64(4))), b.mul(unit, I64(sizes.line))
            for i in range(unroll):
                weights = [
                    e.load(e.at(e.at(column, place), sizes.line * i), I32, e.lanes)
                    for column in columns
                ]
                for r, row_sums in enumerate(sums):
                    one = e.splat(e.load(e.at(act, 4 * i + PITCH * r), I32), e.lanes)
                    for total, weight in zip(row_sums, weights, strict=True):
                        total.set(dot(e, self.flavour, total.get(), one, weight))
        for r, row_sums in enumerate(sums):
            line = b.add(row, I64(r))
            corner = b.add(b.mul(line, I64(sizes.tile_pitch)), b.mul(vector, I64(sizes.line)))
            for i, (total, run) in enumerate(zip(row_sums, runs, strict=True)):
                place = e.at(self.tile, b.add(corner, I64(sizes.line * i)))
                self._add_to_tile(place, total.get(), (run, line), packed.first)

    def _add_to_tile(
        self, place: Value, total: Value, origin: tuple[Value, Value], first: Value
    ) -> None:
        """Add sums to the tile's; ``origin`` is (run of the columns, row)."""
        e, b, lanes = self.e, self.b, self.e.lanes
        run, row = origin
        empty = nothing(e, self.flavour)
        present = b.select(first, empty, e.load(place, empty.type.element, lanes))
        if self.flavour is NumberFormat.BYTES:
            total = b.add(total, e.load(run, I32, lanes))
            if self.acts.sums_rows:
                act_sum = e.splat(e.load(e.at(self.acts.sums, b.mul(row, I64(4))), I32), lanes)
                factor = e.load(e.at(run, self.sizes.line), I32, lanes)
                total = b.add(total, b.mul(act_sum, factor))
            e.store(b.add(total, present), place)
        elif self.flavour.whole:
            e.store(b.add(total, present), place)
        elif self.sizes.head:
            e.store(e.fma(total, e.load(run, F32, lanes), present), place)
        else:
            e.store(b.fadd(total, present), place)
