"""Writes kernels in LLVM IR: loops, variables, and vectors of f32 whatever memory holds.

A kernel is ``i32 kernel(const i64 *args, u8 *scratch)``: its arguments are 64-bit words (addresses,
sizes, strides in bytes, or the bits of an f32), ``scratch`` is memory of the thread that runs it,
aligned to 64 bytes. It gives 0, or a number that says what went wrong.
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
"""What a kernel's function is called in its object file."""


class _FunctionPointer(ir.PointerType):
    """An address that tells llvmlite what is there; LLVM itself no longer wants to know."""

    def __init__(self, kind: ir.FunctionType) -> None:
        super().__init__()
        self.pointee = kind


class Variable:
    """A place on the stack, which LLVM makes a register of."""

    def __init__(self, emitter: Emitter, kind: Any, value: Value) -> None:
        self._emitter, self._kind = emitter, kind
        with emitter.b.goto_entry_block():
            self._place = emitter.b.alloca(kind)
        self.set(value)

    def get(self) -> Value:
        """Its present value."""
        return self._emitter.b.load(self._place, typ=self._kind)

    def set(self, value: Value) -> None:
        """Give it a new value."""
        self._emitter.b.store(value, self._place)


class Emitter:
    """Builds the function of one kernel.

    Args:
        host: what the code is for.
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

    def finish(self, status: Value | None = None) -> str:
        """End the kernel; give the module's text."""
        self.b.ret(I32(0) if status is None else status)
        return str(self.module)

    # Arguments and addresses

    def word(self, index: int) -> Value:
        """Argument ``index`` as an i64."""
        return self.b.load(self.at(self.args, 8 * index), typ=I64)

    def pointer(self, index: int) -> Value:
        """Argument ``index`` as an address."""
        return self.b.load(self.at(self.args, 8 * index), typ=PTR)

    def at(self, base: Value, offset: Value | int) -> Value:
        """The address ``offset`` bytes behind another."""
        step = I64(offset) if isinstance(offset, int) else offset
        return self.b.gep(base, [step], source_etype=I8)

    def room(self, size: int) -> Value:
        """The address of ``size`` bytes on the stack, aligned to 64."""
        with self.b.goto_entry_block():
            place = self.b.alloca(ir.ArrayType(I8, size))
        place.align = 64
        place.type = PTR  # of bytes that may be anything
        return place

    # Control flow

    @contextmanager
    def loop(
        self, begin: Value | int, end: Value | int, step: Value | int = 1
    ) -> Generator[Value, None, None]:
        """Repeat what is written inside for an i64 from ``begin`` below ``end``."""
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

    def variable(self, value: Value) -> Variable:
        """A variable that begins with a value."""
        return Variable(self, value.type, value)

    def fail(self, condition: Value, status: int) -> None:
        """Leave the kernel with a status if a condition holds."""
        with self.b.if_then(condition, likely=False):
            self.b.ret(I32(status))

    # Vectors

    def vector(self, kind: Any, lanes: int) -> Any:
        """The type of ``lanes`` elements; of one element, the element's own."""
        return kind if lanes == 1 else ir.VectorType(kind, lanes)

    def splat(self, value: Value, lanes: int) -> Value:
        """A vector that has one value everywhere."""
        if lanes == 1:
            return value
        kind = ir.VectorType(value.type, lanes)
        if isinstance(value, ir.Constant):
            return ir.Constant(kind, [value.constant] * lanes)
        one = self.b.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
        zeros = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
        return self.b.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    def constant(self, value: float, lanes: int, kind: Any = F32) -> Value:
        """A constant everywhere."""
        return self.splat(ir.Constant(kind, value), lanes)

    def whole(self, value: int, lanes: int) -> Value:
        """A constant i32 everywhere."""
        return self.splat(I32(value), lanes)

    def zero(self, lanes: int) -> Value:
        """0.0 everywhere."""
        return self.constant(0.0, lanes)

    def load(self, address: Value, kind: Any, lanes: int = 1) -> Value:
        """Elements from memory, which need not be aligned."""
        return self.b.load(address, typ=self.vector(kind, lanes), align=1)

    def store(self, value: Value, address: Value) -> None:
        """Elements to memory, which need not be aligned."""
        self.b.store(value, address, align=1)

    def prefetch(self, address: Value, near: bool = True, writes: bool = False) -> None:
        """Ask for the cache line of an address, which need not exist.

        Args:
            address: of any of its bytes.
            near: whether it is to come into the first cache, not only into the second.
            writes: whether it is to be written, too.
        """
        # To be written (1), and to stay in all caches (3) or all but the first (2), of data (1).
        hints = I32(int(writes)), I32(3 if near else 2), I32(1)
        self.external("llvm.prefetch.p0", address, *hints, result=ir.VoidType())

    def intrinsic(self, name: str, *operands: Value, result: Any = None) -> Value:
        """Call an intrinsic; ``name`` is without the types, which are those of the result."""
        kind = operands[0].type if result is None else result
        return self.external(f"{name}.{_mangled(kind)}", *operands, result=kind)

    def external(self, name: str, *operands: Value, result: Any) -> Value:
        """Call a function by its whole name."""
        return self.call(ir.FunctionType(result, [one.type for one in operands]), name, *operands)

    def call(self, kind: ir.FunctionType, name: str, *operands: Value) -> Value:
        """Call a function of a type by its whole name."""
        found = self.module.globals.get(name)
        if found is None:
            found = ir.Function(self.module, kind, name)
        return self.b.call(found, operands)

    def load_function(self, address: Value, kind: ir.FunctionType) -> Value:
        """From memory, the address of a function of a type, to be called."""
        return self.b.load(address, typ=_FunctionPointer(kind))

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """``a * b + c``, rounded once where the host can."""
        if self.host.has_fma:
            return self.intrinsic("llvm.fma", a, b, c)
        return self.b.fadd(self.b.fmul(a, b), c)

    def reduce(self, value: Value, combine: Callable[[Value, Value], Value]) -> Value:
        """Combine the elements of a vector in halves, down to one."""
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
        """The number of the lowest bit that is set in an i64; one is."""
        kind = ir.FunctionType(I64, [I64, I1])
        return self.call(kind, "llvm.cttz.i64", value, I1(1))

    def lanes_of(self, first: Value, second: Value, numbers: Sequence[int]) -> Value:
        """Choose elements of two vectors by number, those of the second after the first's."""
        mask = ir.Constant(ir.VectorType(I32, len(numbers)), list(numbers))
        return self.b.shuffle_vector(first, second, mask)

    def side_by_side(self, vectors: Sequence[Value]) -> Value:
        """Vectors one behind another, as many as a power of two, as one."""
        while len(vectors) > 1:
            every = range(2 * vectors[0].type.count)
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self.lanes_of(low, high, every) for low, high in pairs]
        return vectors[0]


_LOOP = ("head", "body", "done")


def _halves(lanes: int) -> tuple[range, range]:
    return range(lanes), range(lanes, 2 * lanes)


def _mangled(kind: Any) -> str:
    """A type as it stands in the names of intrinsics."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_mangled(kind.element)}"
    return {F32: "f32", F64: "f64"}[kind] if not isinstance(kind, ir.IntType) else f"i{kind.width}"
