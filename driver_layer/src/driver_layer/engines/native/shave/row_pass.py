"""Writer of one pass over the columns of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from driver_layer.abi.shave import Op
from driver_layer.engines.native.jit.emitter import F32, I32, I64, Value, Variable
from driver_layer.engines.native.jit.host import Isa
from driver_layer.engines.native.jit.memory_types import load_f32, store_f32
from driver_layer.engines.native.shave.maths.polynomial import count
from driver_layer.engines.native.shave.operations import COMBINE, COMPUTE
from driver_layer.engines.native.shave.passes import Pass
from driver_layer.engines.native.shave.row_emitter import RowEmitter
from driver_layer.engines.native.shave.row_program import RowProgram
from driver_layer.engines.native.shave.shapes import SINGLE, Columns

_SIDE_BY_SIDE = 4
"""Vectors per iteration, which are independent of each other."""

_LONG = 50
"""Cost in instructions from which one vector per iteration occupies the processor."""


@dataclass(slots=True)
class Row:
    """State that the passes of a row share."""

    e: RowEmitter
    program: RowProgram
    columns: Sequence[Value]
    """Number of columns of each width."""
    slots: Sequence[Value]
    steps: Sequence[Value]
    """Column stride of each window, in bytes."""
    addresses: Sequence[Value]
    """Address of the row in each window."""
    single: dict[int, Value]
    """Values computed so far of which the row has only one."""


class PassWriter:
    """Writer of one pass; its reductions are added to the row's single values."""

    def __init__(self, row: Row, one: Pass) -> None:
        self._row, self._pass, self._e = row, one, row.e
        self._nodes = row.program.values.nodes
        self._columns = row.columns[one.width]
        windows = row.program.shapes.windows
        touched = [windows[window] for window, _ in one.stores]
        touched += [
            windows[self._nodes[n].window] for n in one.needed if self._nodes[n].op is Op.LD
        ]
        strided = any(window.columns is Columns.STRIDED for window in touched)
        self._masks = row.e.host.isa >= Isa.AVX512 and not strided

    def write(self) -> None:
        """Write loops over fewer and fewer columns per iteration; a mask handles the remainder."""
        e, lanes, at = self._e, self._e.lanes, I64(0)
        widths = self._widths()
        totals = [
            e.constant(COMBINE[self._nodes[number].op][1], widths[0])
            for number in self._pass.reductions
        ]
        for width in widths:
            sums = [e.variable(total) for total in self._narrowed(totals, width)]
            at = self._walk(at, width, sums)
            if width == lanes and self._masks:
                self._rest(at, sums)
            totals = [variable.get() for variable in sums]
        self._row.single.update(zip(self._pass.reductions, self._narrowed(totals, 1), strict=True))

    def _widths(self) -> list[int]:
        """Return columns per iteration: several vectors, one vector, a single column."""
        lanes = self._e.lanes
        if lanes == 1:
            return [1]
        widths = [lanes] if self._pass.cost >= _LONG else [_SIDE_BY_SIDE * lanes, lanes]
        return widths if self._masks else [*widths, 1]

    def _narrowed(self, totals: Sequence[Value], lanes: int) -> list[Value]:
        """Return the partial reductions, combined into vectors of ``lanes`` lanes."""
        e, narrowed = self._e, list[Value]()
        for number, total in zip(self._pass.reductions, totals, strict=True):
            combine = COMBINE[self._nodes[number].op][0]
            if lanes == 1:
                narrowed.append(e.reduce(total, lambda low, high, c=combine: c(e, low, high)))
                continue
            while (width := count(total)) > lanes:
                halves = range(width // 2), range(width // 2, width)
                low, high = (e.lanes_of(total, total, half) for half in halves)
                total = combine(e, low, high)
            narrowed.append(total)
        return narrowed

    def _walk(self, begin: Value, lanes: int, sums: Sequence[Variable]) -> Value:
        """Process ``lanes`` columns per iteration, up to their last multiple; return its end."""
        e = self._e
        end = e.b.and_(self._columns, I64(-lanes)) if lanes > 1 else self._columns
        with e.loop(begin, end, lanes) as column:
            self._columns_at(column, lanes, sums)
        return end

    def _rest(self, at: Value, sums: Sequence[Variable]) -> None:
        e = self._e
        left = e.b.sub(self._columns, at)
        with e.b.if_then(e.b.icmp_signed(">", left, I64(0))):
            e.mask = e.first_lanes(left)
            self._columns_at(at, e.lanes, sums)
            e.mask = None

    def _columns_at(self, column: Value, lanes: int, sums: Sequence[Variable]) -> None:
        """Write the pass for ``lanes`` columns; memory is read before it is written."""
        e, values = self._e, dict[int, Value]()
        for number in self._pass.needed:
            values[number] = self._compute(number, column, lanes, values)
        for number in self._pass.kept:
            self._to_slot(number, values[number], column)
        for window, number in self._pass.stores:
            self._store(window, self._value(number, lanes, values), column, lanes)
        for number, total in zip(self._pass.reductions, sums, strict=True):
            combine, nothing = COMBINE[self._nodes[number].op]
            operand = e.only_masked(values[self._nodes[number].sources[0]], nothing)
            total.set(combine(e, operand, total.get()))

    def _value(self, number: int, lanes: int, values: Mapping[int, Value]) -> Value:
        """Return a value of these columns; a single value is copied to all lanes."""
        if self._row.program.widths[number] == SINGLE:
            return self._e.splat(self._row.single[number], lanes)
        return values[number]

    def _compute(
        self, number: int, column: Value, lanes: int, values: Mapping[int, Value]
    ) -> Value:
        node = self._nodes[number]
        if number in self._pass.recalled:
            return self._from_slot(number, column, 0, lanes)
        if node.op is Op.ROT:
            return self._from_slot(node.sources[0], column, node.imm, lanes)
        if node.op is Op.LD:
            return self._load(node.window, column, lanes)
        if node.op is Op.IOTA:
            return self._iota(column, lanes)
        sources = (self._value(source, lanes, values) for source in node.sources)
        return COMPUTE[node.op](self._e, *sources)

    def _slot(self, number: int) -> int:
        return self._row.program.plan.slots[number]

    def _from_slot(self, number: int, column: Value, rotation: int, lanes: int) -> Value:
        e = self._e
        first = e.b.add(column, I64(rotation))
        place = e.at(self._row.slots[self._slot(number)], e.b.mul(first, I64(4)))
        return e.load(place, F32, lanes)

    def _to_slot(self, number: int, value: Value, column: Value) -> None:
        e, slot = self._e, self._slot(number)
        place = e.at(self._row.slots[slot], e.b.mul(column, I64(4)))
        e.store(value, place)
        if slot in self._row.program.plan.doubled:
            e.store(value, e.at(place, e.b.mul(self._columns, I64(4))))

    def _iota(self, column: Value, lanes: int) -> Value:
        e = self._e
        first = e.splat(e.b.sitofp(column, F32), lanes)
        if lanes == 1:
            return first
        lane_numbers = [float(lane) for lane in range(lanes)]
        return e.b.fadd(first, ir.Constant(ir.VectorType(F32, lanes), lane_numbers))

    def _place(self, window: int, column: Value) -> Value:
        offset = self._e.b.mul(column, self._step(window))
        return self._e.at(self._row.addresses[window], offset)

    def _step(self, window: int) -> Value:
        """Return the column stride in bytes; a constant for contiguous columns."""
        shape = self._row.program.shapes.windows[window]
        return self._row.steps[window] if shape.columns is Columns.STRIDED else I64(shape.itemsize)

    def _load(self, window: int, column: Value, lanes: int) -> Value:
        e, shape = self._e, self._row.program.shapes.windows[window]
        place = self._place(window, column)
        if lanes == 1 or shape.columns is Columns.SIDE_BY_SIDE:
            return load_f32(e, place, shape.kind, lanes)
        row = ir.Constant(ir.VectorType(F32, lanes), ir.Undefined)
        for lane in range(lanes):
            one = load_f32(e, self._after(place, window, lane), shape.kind, 1)
            row = e.b.insert_element(row, one, I32(lane))
        return row

    def _store(self, window: int, value: Value, column: Value, lanes: int) -> None:
        e, shape = self._e, self._row.program.shapes.windows[window]
        place = self._place(window, column)
        if lanes == 1 or shape.columns is Columns.SIDE_BY_SIDE:
            store_f32(e, value, place, shape.kind, lanes)
            return
        for lane in range(lanes):
            one = e.b.extract_element(value, I32(lane))
            store_f32(e, one, self._after(place, window, lane), shape.kind, 1)

    def _after(self, place: Value, window: int, lanes: int) -> Value:
        return self._e.at(place, self._e.b.mul(self._row.steps[window], I64(lanes)))
