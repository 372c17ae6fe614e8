"""Builder of kernels in LLVM IR: loops, variables, memory accesses and vector operations.

A kernel is ``i32 kernel(const i64 *args, u8 *scratch)``: its arguments are 64-bit words (addresses,
sizes, strides in bytes, or the bits of an f32), ``scratch`` is memory of the calling thread,
aligned to 64 bytes. The kernel returns 0, or a status that identifies the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from driver_layer.engines.native.jit.host import Host

Value = ir.Value
"""A value of LLVM IR."""

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
PTR = ir.PointerType()

SYMBOL = "kernel"
"""Name of a kernel's function in its object file."""


class _FunctionPointer(ir.PointerType):
    """A pointer with the type of its function, which llvmlite needs; LLVM's pointers are opaque."""

    def __init__(self, kind: ir.FunctionType) -> None:
        super().__init__()
        self.pointee = kind


class Variable:
    """A stack slot, which LLVM promotes to a register."""

    def __init__(self, emitter: Emitter, kind: Any, value: Value) -> None:
        self._emitter, self._kind = emitter, kind
        with emitter.b.goto_entry_block():
            self._place = emitter.b.alloca(kind)
        self.set(value)

    def get(self) -> Value:
        """Return the current value."""
        return self._emitter.b.load(self._place, typ=self._kind)

    def set(self, value: Value) -> None:
        """Assign a new value."""
        self._emitter.b.store(value, self._place)


class Emitter:
    """Builder of one kernel's function.

    Args:
        host: processor that the code is for.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.lanes = host.lanes
        self.module = ir.Module(name="kernel")
        self.module.triple = host.triple
        kind = ir.FunctionType(I32, [PTR, PTR])
        self.function = ir.Function(self.module, kind, SYMBOL)
        self.args, self.scratch = self.function.args
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self._body = self.function.append_basic_block("body")
        self.b.branch(self._body)
        self.b.position_at_end(self._body)

    def finish(self) -> str:
        """End the kernel; return the module's text."""
        self.b.ret(I32(0))
        return str(self.module)

    # Arguments and addresses

    def word(self, index: int) -> Value:
        """Load argument ``index`` as an i64."""
        return self.b.load(self.at(self.args, 8 * index), typ=I64)

    def pointer(self, index: int) -> Value:
        """Load argument ``index`` as a pointer."""
        return self.b.load(self.at(self.args, 8 * index), typ=PTR)

    def at(self, base: Value, offset: Value | int) -> Value:
        """Return the address ``offset`` bytes after a base."""
        step = I64(offset) if isinstance(offset, int) else offset
        return self.b.gep(base, [step], source_etype=I8)

    def room(self, size: int) -> Value:
        """Return the address of ``size`` bytes on the stack, aligned to 64."""
        with self.b.goto_entry_block():
            place = self.b.alloca(ir.ArrayType(I8, size))
        place.align = 64
        place.type = PTR  # opaque, like other addresses
        return place

    # Control flow

    @contextmanager
    def loop(
        self, begin: Value | int, end: Value | int, step: Value | int = 1
    ) -> Generator[Value, None, None]:
        """Open a loop whose i64 index runs from ``begin`` to below ``end``."""
        b = self.b
        first = I64(begin) if isinstance(begin, int) else begin
        last = I64(end) if isinstance(end, int) else end
        head, body, done = (self.function.append_basic_block(name) for name in _LOOP)
        before = b.block
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(I64)
        index.add_incoming(first, before)
        b.cbranch(b.icmp_signed("<", index, last), body, done)
        b.position_at_end(body)
        yield index
        following = b.add(index, I64(step) if isinstance(step, int) else step, flags=("nsw",))
        index.add_incoming(following, b.block)
        b.branch(head)
        b.position_at_end(done)

    @contextmanager
    def repeat(self, condition: Callable[[], Value]) -> Generator[None, None, None]:
        """Open a loop whose body runs while a condition holds."""
        b = self.b
        head, body, done = (self.function.append_basic_block(name) for name in _LOOP)
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(condition(), body, done)
        b.position_at_end(body)
        yield
        b.branch(head)
        b.position_at_end(done)

    def variable(self, value: Value) -> Variable:
        """Return a variable with an initial value."""
        return Variable(self, value.type, value)

    def fail(self, condition: Value, status: int) -> None:
        """Return from the kernel with a status if a condition holds."""
        with self.b.if_then(condition, likely=False):
            self.b.ret(I32(status))

    # Vectors

    def vector(self, kind: Any, lanes: int) -> Any:
        """Return the type of ``lanes`` elements; the scalar type for one element."""
        return kind if lanes == 1 else ir.VectorType(kind, lanes)

    def splat(self, value: Value, lanes: int) -> Value:
        """Return a vector with one value in all lanes."""
        if lanes == 1:
            return value
        kind = ir.VectorType(value.type, lanes)
        if isinstance(value, ir.Constant):
            return ir.Constant(kind, [value.constant] * lanes)
        one = self.b.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
        zeros = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
        return self.b.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    def constant(self, value: float, lanes: int, kind: Any = F32) -> Value:
        """Return a constant in all lanes."""
        return self.splat(ir.Constant(kind, value), lanes)

    def whole(self, value: int, lanes: int) -> Value:
        """Return an i32 constant in all lanes."""
        return self.splat(I32(value), lanes)

    def zero(self, lanes: int) -> Value:
        """Return 0.0 in all lanes."""
        return self.constant(0.0, lanes)

    def load(self, address: Value, kind: Any, lanes: int = 1) -> Value:
        """Load elements from an address of any alignment."""
        return self.b.load(address, typ=self.vector(kind, lanes), align=1)

    def store(self, value: Value, address: Value) -> None:
        """Store elements to an address of any alignment."""
        self.b.store(value, address, align=1)

    def prefetch(self, address: Value, near: bool = True, writes: bool = False) -> None:
        """Prefetch the cache line of an address, which may be invalid.

        Args:
            address: address of any byte of the line.
            near: True to fetch into the first-level cache, False into the second-level cache only.
            writes: True if the line will be written.
        """
        # Write (1); keep in all caches (3) or in all but the first (2); data cache (1).
        hints = I32(int(writes)), I32(3 if near else 2), I32(1)
        self.external("llvm.prefetch.p0", address, *hints, result=ir.VoidType())

    def intrinsic(self, name: str, *operands: Value, result: Any = None) -> Value:
        """Call an intrinsic; its name is given without the type suffix, which is the result's."""
        kind = operands[0].type if result is None else result
        return self.external(f"{name}.{_mangled(kind)}", *operands, result=kind)

    def external(self, name: str, *operands: Value, result: Any) -> Value:
        """Call a function by its full name."""
        found = self.module.globals.get(name)
        if found is None:
            kind = ir.FunctionType(result, [one.type for one in operands])
            found = ir.Function(self.module, kind, name)
        return self.b.call(found, operands)

    def load_function(self, address: Value, kind: ir.FunctionType) -> Value:
        """Load the address of a function of a given type."""
        return self.b.load(address, typ=_FunctionPointer(kind))

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """Return ``a * b + c``, rounded once if the host has FMA."""
        if self.host.has_fma:
            return self.intrinsic("llvm.fma", a, b, c)
        return self.b.fadd(self.b.fmul(a, b), c)

    def reduce(self, value: Value, combine: Callable[[Value, Value], Value]) -> Value:
        """Reduce a vector to one element by combining halves."""
        if not isinstance(value.type, ir.VectorType):
            return value
        lanes = value.type.count
        nothing = ir.Constant(value.type, ir.Undefined)
        while lanes > 1:
            lanes //= 2
            low, high = (self.lanes_of(value, nothing, r) for r in _halves(lanes))
            value = combine(low, high)
            nothing = ir.Constant(value.type, ir.Undefined)
        return self.b.extract_element(value, I32(0))

    def lowest_bit(self, value: Value) -> Value:
        """Return the number of the lowest set bit of a nonzero i64."""
        return self.external("llvm.cttz.i64", value, I1(1), result=I64)

    def lanes_of(self, first: Value, second: Value, numbers: Sequence[int]) -> Value:
        """Shuffle two vectors; lane numbers of the second follow those of the first."""
        mask = ir.Constant(ir.VectorType(I32, len(numbers)), list(numbers))
        return self.b.shuffle_vector(first, second, mask)

    def side_by_side(self, vectors: Sequence[Value]) -> Value:
        """Concatenate vectors, whose number is a power of two."""
        while len(vectors) > 1:
            every = range(2 * vectors[0].type.count)
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self.lanes_of(low, high, every) for low, high in pairs]
        return vectors[0]


_LOOP = ("head", "body", "done")


def _halves(lanes: int) -> tuple[range, range]:
    return range(lanes), range(lanes, 2 * lanes)


def _mangled(kind: Any) -> str:
    """Return a type's suffix in the names of intrinsics."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_mangled(kind.element)}"
    return {F32: "f32", F64: "f64"}[kind] if not isinstance(kind, ir.IntType) else f"i{kind.width}"
