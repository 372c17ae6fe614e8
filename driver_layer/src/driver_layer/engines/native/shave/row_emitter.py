"""An emitter whose loads and stores leave out the lanes behind the end of a row."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from driver_layer.engines.native.jit.emitter import I32, Emitter, Value


class RowEmitter(Emitter):
    """Builds a kernel; while ``mask`` is set, vectors in memory have only the lanes that it has."""

    mask: Value | None = None

    def load(self, address: Value, kind: Any, lanes: int = 1) -> Value:
        """Elements from memory; 0 where the mask has none."""
        if self.mask is None:
            return super().load(address, kind, lanes)
        vector = self.vector(kind, lanes)
        zeros = self.splat(ir.Constant(kind, 0), lanes)
        name = f"llvm.masked.load.v{lanes}{_NAMES[str(kind)]}.p0"
        return self.external(name, address, I32(1), self.mask, zeros, result=vector)

    def store(self, value: Value, address: Value) -> None:
        """Elements to memory, where the mask has them."""
        if self.mask is None:
            super().store(value, address)
            return
        kind = value.type
        name = f"llvm.masked.store.v{kind.count}{_NAMES[str(kind.element)]}.p0"
        self.external(name, value, address, I32(1), self.mask, result=ir.VoidType())

    def first_lanes(self, number: Value) -> Value:
        """A mask of so many lanes."""
        limit = self.splat(self.b.trunc(number, I32), self.lanes)
        lanes = ir.Constant(ir.VectorType(I32, self.lanes), list(range(self.lanes)))
        return self.b.icmp_signed("<", lanes, limit)

    def only_masked(self, value: Value, otherwise: float) -> Value:
        """A vector with a number where the mask has no lane."""
        if self.mask is None:
            return value
        return self.b.select(self.mask, value, self.constant(otherwise, self.lanes))


_NAMES = {"float": "f32", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64"}
"""Types as they stand in the names of intrinsics."""
