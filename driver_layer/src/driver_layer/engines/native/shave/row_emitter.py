"""Emitter whose loads and stores mask lanes beyond the end of a row."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from driver_layer.engines.native.jit.emitter import I32, Emitter, Value


class RowEmitter(Emitter):
    """A kernel builder; while ``mask`` is set, loads and stores access only its lanes."""

    mask: Value | None = None

    def load(self, address: Value, kind: Any, lanes: int = 1) -> Value:
        """Load elements; 0 for masked lanes."""
        if self.mask is None:
            return super().load(address, kind, lanes)
        vector = self.vector(kind, lanes)
        zeros = self.splat(ir.Constant(kind, 0), lanes)
        name = f"llvm.masked.load.v{lanes}{_NAMES[str(kind)]}.p0"
        return self.external(name, address, I32(1), self.mask, zeros, result=vector)

    def store(self, value: Value, address: Value) -> None:
        """Store elements, except masked lanes."""
        if self.mask is None:
            super().store(value, address)
            return
        kind = value.type
        name = f"llvm.masked.store.v{kind.count}{_NAMES[str(kind.element)]}.p0"
        self.external(name, value, address, I32(1), self.mask, result=ir.VoidType())

    def first_lanes(self, number: Value) -> Value:
        """Return a mask with the first ``number`` lanes set."""
        limit = self.splat(self.b.trunc(number, I32), self.lanes)
        lanes = ir.Constant(ir.VectorType(I32, self.lanes), list(range(self.lanes)))
        return self.b.icmp_signed("<", lanes, limit)

    def only_masked(self, value: Value, otherwise: float) -> Value:
        """Replace masked lanes by a number."""
        if self.mask is None:
            return value
        return self.b.select(self.mask, value, self.constant(otherwise, self.lanes))


_NAMES = {"float": "f32", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64"}
"""Element types in the names of intrinsics."""
