"""Kernels of copies, fills and gathers.

Each loops over up to ``DIMS`` dimensions, outermost first, around contiguous runs of bytes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack
from enum import IntEnum

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from driver_layer.engines.native.jit.emitter import I1, I64, Emitter, Value
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.kernels import KernelSpec

DIMS = 6


class CopyWord(IntEnum):
    """Arguments of a copy."""

    SRC = 0
    DST = 1
    WIDTH = 2
    COUNTS = 3
    SRC_STRIDES = COUNTS + DIMS
    DST_STRIDES = SRC_STRIDES + DIMS
    WORDS = DST_STRIDES + DIMS


class FillWord(IntEnum):
    """Arguments of a fill."""

    DST = 0
    VALUE = 1
    WIDTH = 2
    COUNTS = 3
    DST_STRIDES = COUNTS + DIMS
    WORDS = DST_STRIDES + DIMS


class GatherWord(IntEnum):
    """Arguments of a gather: listed rows of a table are written one after the other."""

    TABLE = 0
    LIST = 1
    DST = 2
    COUNT = 3
    PITCH = 4
    WIDTH = 5
    ROWS = 6
    """Number of rows of the table."""
    WORDS = 7


GATHER_OUTSIDE = 1
"""Status of a gather whose list has a row number outside the table."""


def gather_list(words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a view of the row numbers that a gather with these arguments reads."""
    listed = (ctypes.c_int64 * int(words[GatherWord.COUNT])).from_address(
        int(words[GatherWord.LIST])
    )
    return np.ctypeslib.as_array(listed)


_ELEMENTS = (1, 2, 4, 8)
"""Sizes of runs, in bytes, that one load and one store move."""


def copy_kernel(width: int) -> KernelSpec:
    """Return the kernel for runs of a width; 1, 2, 4 and 8 bytes have kernels of their own."""
    if width in _ELEMENTS:
        return KernelSpec(f"dma copy {width}", lambda host: _write_copy(host, width))
    return KernelSpec("dma copy", lambda host: _write_copy(host, 0))


FILL = KernelSpec("dma fill", lambda host: _write_fill(host))
GATHER = KernelSpec("dma gather", lambda host: _write_gather(host))


def _write_copy(host: Host, width: int) -> str:
    e = Emitter(host)
    with ExitStack() as loops:
        strides = (CopyWord.SRC_STRIDES, CopyWord.DST_STRIDES)
        src, dst = _walk(e, loops, (CopyWord.SRC, CopyWord.DST), strides)
        if width:
            e.store(e.load(src, ir.IntType(8 * width)), dst)
        else:
            move_bytes(e, dst, src, e.word(CopyWord.WIDTH))
    return e.finish()


def _write_fill(host: Host) -> str:
    e = Emitter(host)
    value = e.b.trunc(e.word(FillWord.VALUE), ir.IntType(8))
    with ExitStack() as loops:
        (dst,) = _walk(e, loops, (FillWord.DST,), (FillWord.DST_STRIDES,))
        operands = dst, value, e.word(FillWord.WIDTH), I1(0)
        e.external("llvm.memset.p0.i64", *operands, result=ir.VoidType())
    return e.finish()


def _write_gather(host: Host) -> str:
    e = Emitter(host)
    b = e.b
    table, rows, width = e.pointer(GatherWord.TABLE), e.word(GatherWord.ROWS), GatherWord.WIDTH
    # All row numbers are checked first: a failing gather writes nothing.
    with e.loop(0, e.word(GatherWord.COUNT)) as i:
        number = e.load(e.at(e.pointer(GatherWord.LIST), b.mul(i, I64(8))), I64)
        e.fail(b.icmp_unsigned(">=", number, rows), GATHER_OUTSIDE)
    with e.loop(0, e.word(GatherWord.COUNT)) as i:
        number = e.load(e.at(e.pointer(GatherWord.LIST), b.mul(i, I64(8))), I64)
        row = e.at(table, b.mul(number, e.word(GatherWord.PITCH)))
        place = e.at(e.pointer(GatherWord.DST), b.mul(i, e.word(width)))
        move_bytes(e, place, row, e.word(width))
    return e.finish()


def _walk(
    e: Emitter, loops: ExitStack, pointers: Sequence[int], strides: Sequence[int]
) -> list[Value]:
    """Open the loops over all dimensions; return the addresses inside."""
    places = [e.pointer(pointer) for pointer in pointers]
    for dim in range(DIMS):
        index = loops.enter_context(e.loop(0, e.word(CopyWord.COUNTS + dim)))
        places = [
            e.at(place, e.b.mul(index, e.word(stride + dim)))
            for place, stride in zip(places, strides, strict=True)
        ]
    return places


def move_bytes(e: Emitter, dst: Value, src: Value, count: Value) -> None:
    """Copy bytes between ranges that do not overlap."""
    e.external("llvm.memcpy.p0.p0.i64", dst, src, count, I1(0), result=ir.VoidType())
