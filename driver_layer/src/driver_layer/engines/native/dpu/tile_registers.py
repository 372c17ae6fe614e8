"""Tile registers (AMX): eight matrices of 16 rows of 64 bytes, and their products.

The first operand has rows of units along k, the second vectors of units of 16 columns, one for
each step of k; a product adds to 16 rows of 16 sums. For instructions and the layout of the
configuration see Intel's Software Developer's Manual, volume 1, chapter 18.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from llvmlite import ir

from driver_layer.engines.native.dpu.flavours import NumberFormat
from driver_layer.engines.native.jit.emitter import I8, I16, I64, Emitter, Value

ROWS = 16
"""Rows of a tile, and units in one of its rows."""

ROW_BYTES = 64

_COUNT = 8
_CONFIGURATION_BYTES = 64
_ROW_LENGTHS_AT = 16
_ROW_COUNTS_AT = 48

_DOTS = {
    NumberFormat.BF16: "llvm.x86.tdpbf16ps",
    NumberFormat.HALVES: "llvm.x86.tdpbf16ps",
    NumberFormat.PAIRS: "llvm.x86.tdpbf16ps",
    NumberFormat.HALVED_WEIGHTS: "llvm.x86.tdpbf16ps",
    NumberFormat.THIRDS: "llvm.x86.tdpbf16ps",
    NumberFormat.BYTES: "llvm.x86.tdpbusd",
}


@contextmanager
def configured(e: Emitter) -> Generator[None, None, None]:
    """Configure all tile registers to their full size for the code written inside."""
    room = e.room(_CONFIGURATION_BYTES)
    zero = ir.Constant(ir.VectorType(I8, _CONFIGURATION_BYTES), [0] * _CONFIGURATION_BYTES)
    e.store(zero, room)
    e.store(I8(1), room)  # palette 1, the only one
    for number in range(_COUNT):
        e.store(I16(ROW_BYTES), e.at(room, _ROW_LENGTHS_AT + 2 * number))
        e.store(I8(ROWS), e.at(room, _ROW_COUNTS_AT + number))
    e.external("llvm.x86.ldtilecfg", room, result=ir.VoidType())
    yield
    # Threads without live tiles have less state to save at a context switch.
    e.external("llvm.x86.tilerelease", result=ir.VoidType())


def clear_tile(e: Emitter, tile: int) -> None:
    """Set all sums of a tile to 0."""
    e.external("llvm.x86.tilezero", I8(tile), result=ir.VoidType())


def load_tile(e: Emitter, tile: int, address: Value, pitch: int) -> None:
    """Load a tile whose rows are ``pitch`` bytes apart."""
    e.external("llvm.x86.tileloadd64", I8(tile), address, I64(pitch), result=ir.VoidType())


def stream_tile(e: Emitter, tile: int, address: Value, pitch: int) -> None:
    """Load a tile that is not needed again soon, without evicting others from the first cache."""
    e.external("llvm.x86.tileloaddt164", I8(tile), address, I64(pitch), result=ir.VoidType())


def store_tile(e: Emitter, tile: int, address: Value, pitch: int) -> None:
    """Store a tile, with rows ``pitch`` bytes apart."""
    e.external("llvm.x86.tilestored64", I8(tile), address, I64(pitch), result=ir.VoidType())


def add_products(e: Emitter, flavour: NumberFormat, sums: int, rows: int, columns: int) -> None:
    """Add the products of a tile of rows of units and a tile of columns of units."""
    operands = (I8(sums), I8(rows), I8(columns))
    e.external(_DOTS[flavour], *operands, result=ir.VoidType())
