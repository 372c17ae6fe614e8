"""Kernel of a program: loops over the grid, and for each row its passes.

Arguments, as 64-bit words: the grid, outermost dimension first; the number of columns of each
width; the byte offset of each slot in scratch memory; then for each window its address, its stride
in each grid dimension, and its column stride.
"""

from __future__ import annotations

from driver_layer.abi.shave import GRID_DIMS, REDUCTIONS, Op
from driver_layer.engines.native.jit.emitter import F32, I32, Value
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.memory_types import load_f32, store_f32
from driver_layer.engines.native.shave.operations import COMPUTE
from driver_layer.engines.native.shave.row_emitter import RowEmitter
from driver_layer.engines.native.shave.row_pass import PassWriter, Row
from driver_layer.engines.native.shave.row_program import WINDOW_WORDS, RowProgram
from driver_layer.engines.native.shave.shapes import SINGLE, Columns
from driver_layer.engines.native.shave.values import Node


def write_kernel(program: RowProgram, host: Host) -> str:
    """Return the module of LLVM IR."""
    return _Writer(program, host).write()


class _Writer:
    def __init__(self, program: RowProgram, host: Host) -> None:
        self._program = program
        self._e = e = RowEmitter(host)
        at = GRID_DIMS + program.width_count
        columns = [e.word(GRID_DIMS + width) for width in range(program.width_count)]
        slots = [e.at(e.scratch, e.word(at + n)) for n in range(len(program.plan.slot_widths))]
        words = range(program.first_window, program.word_count, WINDOW_WORDS)
        self._addresses = [e.pointer(word) for word in words]
        self._strides = [[e.word(word + 1 + dim) for word in words] for dim in range(GRID_DIMS)]
        steps = [e.word(word + 1 + GRID_DIMS) for word in words]
        self._row = Row(e, program, columns, slots, steps, self._addresses, {})

    def write(self) -> str:
        self._grid(0, self._addresses)
        return self._e.finish()

    def _grid(self, dim: int, addresses: list[Value]) -> None:
        if dim == GRID_DIMS:
            self._row.addresses = addresses
            self._write_row()
            return
        e = self._e
        with e.loop(0, e.word(dim)) as index:
            moved = [
                e.at(address, e.b.mul(index, stride))
                for address, stride in zip(addresses, self._strides[dim], strict=True)
            ]
            self._grid(dim + 1, moved)

    def _write_row(self) -> None:
        row, program = self._row, self._program
        plan, widths = program.plan, program.widths
        for level in range(1 + max(plan.levels, default=0)):
            for number, node in enumerate(program.values.nodes):
                at_once = widths[number] == SINGLE and node.op not in REDUCTIONS
                if at_once and plan.levels[number] == level:
                    row.single[number] = self._single(node)
            for one in plan.passes:
                if one.level == level:
                    PassWriter(row, one).write()
        for window, value in program.values.stores:
            shape = program.shapes.windows[window]
            if shape.columns is Columns.SINGLE:
                store_f32(self._e, row.single[value], row.addresses[window], shape.kind, 1)

    def _single(self, node: Node) -> Value:
        """Compute a value of which a row has only one."""
        e, row = self._e, self._row
        if node.op is Op.LD:
            kind = self._program.shapes.windows[node.window].kind
            return load_f32(e, row.addresses[node.window], kind, 1)
        if node.op is Op.IMM:
            return e.b.bitcast(I32(node.imm), F32)
        return COMPUTE[node.op](e, *(row.single[source] for source in node.sources))
