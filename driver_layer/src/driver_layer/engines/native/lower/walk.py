"""Walks over all accesses of a program, as kernels: programs have a hundred thousand of them.

The arguments of a walk are arrays of i64. Those of ``Accesses`` and ``Overlaps`` come first and are
the same for all walks; each walk has some of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from driver_layer.engines.native.jit.emitter import I64, Emitter, Value
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.kernels import Kernels, KernelSpec
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.regions import FIXED, Overlaps
from driver_layer.engines.native.lower.template import Access

NONE = -1
"""Stands for an access or an operation where there is none."""

DENSE = 4
"""Set beside ``Access`` where a region has no gaps."""


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What is walked over.

    Attributes:
        first: the accesses of operation i are ``first[i]`` to ``first[i + 1]``.
        kinds: of accesses: ``Access``, and DENSE.
        owners: the operation of each access.
        overlaps: of regions.
    """

    first: Ints
    kinds: Ints
    owners: Ints
    overlaps: Overlaps

    @classmethod
    def of(cls, accesses: Accesses, overlaps: Overlaps) -> Ground:
        """Look at operations in a way that walks understand."""
        kinds = accesses.kinds.astype(np.int64) | np.where(accesses.dense, DENSE, 0)
        return cls(accesses.first.astype(np.int64), kinds, accesses.owners, overlaps)

    def walk(self, kernels: Kernels, spec: KernelSpec, *own: Ints) -> None:
        """Run a walk over all of it, with its own arrays."""
        overlaps = self.overlaps
        inside = overlaps.inside.astype(np.int64)
        count = np.array([len(self.first) - 1], np.int64)
        arrays = (
            count, self.first, self.kinds, self.owners,
            overlaps.first.astype(np.int64), overlaps.others.astype(np.int64), inside,
            *own,
        )  # fmt: skip
        words = np.array([array.ctypes.data for array in arrays], np.int64)
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        kind(kernels.address(spec))(words.ctypes.data, None)

    def regions(self, value: int) -> Ints:
        """An entry for each region."""
        return np.full(len(self.overlaps), value, np.int64)


def flags(values: Flags) -> Ints:
    """Truth as walks read it."""
    return values.astype(np.int64)


class Array:
    """An array of i64 in a walk."""

    def __init__(self, e: Emitter, word: int) -> None:
        self._e = e
        self._base = e.pointer(word)

    def __getitem__(self, index: Value) -> Value:
        return self._e.load(self._place(index), I64)

    def __setitem__(self, index: Value, value: Value) -> None:
        self._e.store(value, self._place(index))

    def _place(self, index: Value) -> Value:
        return self._e.at(self._base, self._e.b.mul(index, I64(8)))


class Walk:
    """What the body of a walk works with.

    Attributes:
        e: the kernel that is written.
        own: the walk's own arrays.
    """

    _OWN = 7

    def __init__(self, host: Host, own: int) -> None:
        self.e = Emitter(host)
        self.b = self.e.b
        arrays = [Array(self.e, word) for word in range(self._OWN + own)]
        self._count, self.first, self.kinds, self.owners = arrays[:4]
        self._adjacent, self._others, self._inside = arrays[4:7]
        self.own = arrays[self._OWN :]

    @contextmanager
    def operations(self, backwards: bool = False) -> Generator[Value, None, None]:
        """For each operation in order, or from the last to the first."""
        count = self._count[I64(0)]
        with self.e.loop(0, count) as index:
            last = self.b.sub(self.b.sub(count, I64(1)), index)
            yield last if backwards else index

    @contextmanager
    def accesses(self, operation: Value, kind: Access) -> Generator[Value, None, None]:
        """For each access of an operation that reads, or writes."""
        last = self.first[self.b.add(operation, I64(1))]
        with self.e.loop(self.first[operation], last) as access, self.when(self.has(access, kind)):
            yield access

    @contextmanager
    def neighbours(self, region: Value) -> Generator[tuple[Value, Value], None, None]:
        """For each region that overlaps one: which, and whether it lies in that one as a whole."""
        last = self._adjacent[self.b.add(region, I64(1))]
        with self.when(self.is_real(region)), self.e.loop(self._adjacent[region], last) as i:
            yield self._others[i], self.b.icmp_signed("!=", self._inside[i], I64(0))

    @contextmanager
    def when(self, *conditions: Value) -> Generator[None, None, None]:
        """If all conditions hold."""
        whole = conditions[0]
        for condition in conditions[1:]:
            whole = self.b.and_(whole, condition)
        with self.b.if_then(whole):
            yield

    @contextmanager
    def back(self, start: Value, links: Array) -> Generator[Value, None, None]:
        """For a number, then the one that it is linked to, and so on until NONE."""
        b = self.b
        head, body, done = (self.e.function.append_basic_block(name) for name in _BACK)
        before = b.block
        b.branch(head)
        b.position_at_end(head)
        number = b.phi(I64)
        number.add_incoming(start, before)
        b.cbranch(self.is_real(number), body, done)
        b.position_at_end(body)
        yield number
        following = links[number]
        number.add_incoming(following, b.block)
        b.branch(head)
        b.position_at_end(done)

    def has(self, access: Value, kind: int) -> Value:
        """Whether an access is of a kind."""
        return self.b.icmp_signed("!=", self.b.and_(self.kinds[access], I64(kind)), I64(0))

    def is_real(self, number: Value) -> Value:
        """Whether a number is that of something: neither FIXED nor NONE."""
        return self.b.icmp_signed(">=", number, I64(0))

    def less(self, left: Value, right: Value) -> Value:
        """Whether one number is less than another."""
        return self.b.icmp_signed("<", left, right)

    def same(self, left: Value, right: Value) -> Value:
        """Whether two numbers are equal."""
        return self.b.icmp_signed("==", left, right)

    def true(self, value: Value) -> Value:
        """Whether a flag is set."""
        return self.b.icmp_signed("!=", value, I64(0))

    def larger(self, left: Value, right: Value) -> Value:
        """The larger of two numbers."""
        return self.b.select(self.less(left, right), right, left)

    def count_up(self, array: Array, index: Value) -> None:
        """One more."""
        array[index] = self.b.add(array[index], I64(1))

    def note_written(self, operation: Value, access: Value, region: Value, state: Written) -> None:
        """Let the regions that an access writes to know."""
        with self.neighbours(region) as (other, inside):
            state.operation[other] = operation
            whole = self.b.and_(inside, self.has(access, DENSE))
            state.access[other] = self.b.select(whole, access, I64(NONE))


_BACK = ("back", "body", "through")


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """Who wrote each region last.

    Attributes:
        operation: that wrote any of it.
        access: that wrote all of it at once, or NONE.
    """

    operation: Array
    access: Array


def walk_kernel(name: str, own: int, body: Callable[[Walk], None]) -> KernelSpec:
    """Declare a walk with some arrays of its own."""

    def write(host: Host) -> str:
        walk = Walk(host, own)
        body(walk)
        return walk.e.finish()

    return KernelSpec(f"lower {name}", write)


assert FIXED < 0  # ``is_real`` tells it from a region's number
