"""One sequence of a batch, read from its source before the batch is concatenated."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape, Transpose
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.rewriting.match import producer
from compiler_layer.rewriting.replace import insert_before, reshape_before, slice_before


@dataclass(frozen=True, slots=True)
class SequenceOf:
    """Function from values [B, …] to those of one sequence, through ops that cost nothing.

    Caches of several sequences are separate tensors, which a graph concatenates to a batch. One
    sequence of the batch is the cache itself, so nothing needs to be concatenated.

    Args:
        place: op before which new ops are inserted.
        number: number of the sequence.
    """

    place: Operation
    number: int

    def __call__(self, value: SSAValue) -> SSAValue:
        """Return [1, …] of a value; the value itself if all sequences share it."""
        if shape_of(value)[0] == 1:
            return value
        join = producer(value, Concat)
        if join is not None:
            return self._of_join(join)
        turned = producer(value, Transpose)
        if turned is not None and turned.permutation()[0] == 0:
            return self._insert(Transpose.make([self(turned.x), turned.order]))
        reshaped = producer(value, Reshape)
        if reshaped is not None and shape_of(reshaped.x)[:1] == shape_of(value)[:1]:
            return reshape_before(self.place, self(reshaped.x), (1, *shape_of(value)[1:]))
        floats = producer(value, Convert)
        if floats is not None:
            kind = floats.destination_type
            return self._insert(Convert.make([self(floats.x)], destination_type=kind))
        rows = producer(value, Dequantize)
        if rows is not None and shape_of(rows.stored)[0] == shape_of(value)[0]:
            return self._of_rows(rows)
        return self._slice(value)

    def _of_join(self, join: Concat) -> SSAValue:
        if join.known_axis() != 0:
            return self._insert(Concat.make([[self(x) for x in join.parts]], axis=join.axis))
        begin = 0
        for part in join.parts:
            count = shape_of(part)[0]
            if self.number < begin + count:
                return SequenceOf(self.place, self.number - begin)(part)
            begin += count
        raise IndexError(f"sequence {self.number}: the batch has {begin}")

    def _of_rows(self, rows: Dequantize) -> SSAValue:
        """Take 8-bit rows and their scales, if both have the same dimensions."""
        tables = [rows.scale] if rows.zero is None else [rows.scale, rows.zero]
        rank = len(shape_of(rows.stored))
        if any(len(shape_of(table)) != rank for table in tables):
            return self._slice(rows.output)
        scale, *zero = map(self, tables)
        kind = rows.destination_type
        return self._insert(
            Dequantize.make([self(rows.stored), scale, zero], destination_type=kind)
        )

    def _slice(self, value: SSAValue) -> SSAValue:
        return slice_before(self.place, value, 0, self.number, self.number + 1)

    def _insert(self, op: OvOp) -> SSAValue:
        return insert_before(self.place, op)
