"""Dataflow analyses: kernels that scan all accesses of a program.

A program is a basic block of up to a hundred thousand accesses. The arguments of a scan are arrays
of i64: first those of ``AccessGraph``, which all scans share, then the state of the scan.
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
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.regions import READ_ONLY, Aliases
from driver_layer.engines.native.lower.template import Access

NONE = -1
"""No access, or no operation."""

DENSE = 4
"""Flag in addition to those of ``Access``: the region has no gaps."""


@dataclass(frozen=True, slots=True, eq=False)
class AccessGraph:
    """Operations, their accesses, and the aliases between regions, which scans read.

    Attributes:
        first: the accesses of operation i are ``first[i]`` to ``first[i + 1]``.
        kinds: flags of each access: ``Access``, and DENSE.
        owners: operation of each access.
        aliases: aliases of regions.
    """

    first: Ints
    kinds: Ints
    owners: Ints
    aliases: Aliases

    @classmethod
    def of(cls, accesses: Accesses, aliases: Aliases) -> AccessGraph:
        """Build the graph of accesses and the aliases of their regions."""
        kinds = accesses.kinds.astype(np.int64) | np.where(accesses.dense, DENSE, 0)
        return cls(accesses.first.astype(np.int64), kinds, accesses.owners, aliases)

    def run(self, kernels: Kernels, spec: KernelSpec, *state: Ints) -> None:
        """Run a scan with its state."""
        aliases = self.aliases
        covered = aliases.covered.astype(np.int64)
        count = np.array([len(self.first) - 1], np.int64)
        arrays = (
            count, self.first, self.kinds, self.owners,
            aliases.first.astype(np.int64), aliases.regions.astype(np.int64), covered,
            *state,
        )  # fmt: skip
        words = np.array([array.ctypes.data for array in arrays], np.int64)
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        kind(kernels.address(spec))(words.ctypes.data, None)

    def per_region(self, value: int) -> Ints:
        """Return an array with a value for each region."""
        return np.full(len(self.aliases), value, np.int64)


def flags(values: Flags) -> Ints:
    """Convert flags to i64, for scans."""
    return values.astype(np.int64)


class Array:
    """An array of i64 in a scan."""

    def __init__(self, e: Emitter, word: int) -> None:
        self._e = e
        self._base = e.pointer(word)

    def __getitem__(self, index: Value) -> Value:
        return self._e.load(self._place(index), I64)

    def __setitem__(self, index: Value, value: Value) -> None:
        self._e.store(value, self._place(index))

    def _place(self, index: Value) -> Value:
        return self._e.at(self._base, self._e.b.mul(index, I64(8)))


class Scan:
    """Builder of a scan: loops, conditions and tables for its body.

    Attributes:
        e: emitter of the kernel.
        state: arrays of the scan's state.
    """

    _SHARED = 7

    def __init__(self, host: Host, state: int) -> None:
        self.e = Emitter(host)
        self.b = self.e.b
        arrays = [Array(self.e, word) for word in range(self._SHARED + state)]
        self._count, self.first, self.kinds, self.owners = arrays[:4]
        self._first_alias, self._aliases, self._covered = arrays[4:7]
        self.state = arrays[self._SHARED :]

    @contextmanager
    def operations(self, backwards: bool = False) -> Generator[Value, None, None]:
        """Loop over operations in order, or from the last to the first."""
        count = self._count[I64(0)]
        with self.e.loop(0, count) as index:
            last = self.b.sub(self.b.sub(count, I64(1)), index)
            yield last if backwards else index

    @contextmanager
    def accesses(self, operation: Value, kind: Access) -> Generator[Value, None, None]:
        """Loop over the accesses of an operation that are of a kind: reads, or writes."""
        last = self.first[self.b.add(operation, I64(1))]
        with self.e.loop(self.first[operation], last) as access, self.when(self.has(access, kind)):
            yield access

    @contextmanager
    def aliases(self, region: Value) -> Generator[tuple[Value, Value], None, None]:
        """Loop over the aliases of a region; yield each, and whether the region covers it."""
        last = self._first_alias[self.b.add(region, I64(1))]
        with self.when(self.exists(region)), self.e.loop(self._first_alias[region], last) as i:
            yield self._aliases[i], self.b.icmp_signed("!=", self._covered[i], I64(0))

    @contextmanager
    def when(self, *conditions: Value) -> Generator[None, None, None]:
        """Execute the body if all conditions hold."""
        whole = conditions[0]
        for condition in conditions[1:]:
            whole = self.b.and_(whole, condition)
        with self.b.if_then(whole):
            yield

    @contextmanager
    def follow(self, start: Value, links: Array) -> Generator[Value, None, None]:
        """Loop over a number and its successors by ``links``, until NONE."""
        number = self.e.variable(start)
        with self.e.repeat(lambda: self.exists(number.get())):
            current = number.get()
            yield current
            number.set(links[current])

    def has(self, access: Value, kind: int) -> Value:
        """Return whether an access has any of the flags ``kind``."""
        return self.b.icmp_signed("!=", self.b.and_(self.kinds[access], I64(kind)), I64(0))

    def exists(self, number: Value) -> Value:
        """Return whether a number is an index: neither READ_ONLY nor NONE."""
        return self.b.icmp_signed(">=", number, I64(0))

    def less(self, left: Value, right: Value) -> Value:
        """Return whether one number is less than another."""
        return self.b.icmp_signed("<", left, right)

    def equal(self, left: Value, right: Value) -> Value:
        """Return whether two numbers are equal."""
        return self.b.icmp_signed("==", left, right)

    def is_set(self, value: Value) -> Value:
        """Return whether a flag is set."""
        return self.b.icmp_signed("!=", value, I64(0))

    def maximum(self, left: Value, right: Value) -> Value:
        """Return the larger of two numbers."""
        return self.b.select(self.less(left, right), right, left)

    def increment(self, array: Array, index: Value) -> None:
        """Add one to an entry."""
        array[index] = self.b.add(array[index], I64(1))

    def record_write(
        self, operation: Value, access: Value, region: Value, writes: ReachingWrites
    ) -> None:
        """Record a write to a region, and to its aliases."""
        with self.aliases(region) as (other, covered):
            writes.operation[other] = operation
            whole = self.b.and_(covered, self.has(access, DENSE))
            writes.access[other] = self.b.select(whole, access, I64(NONE))


@dataclass(frozen=True, slots=True, eq=False)
class ReachingWrites:
    """Reaching write of each region at the current operation.

    Attributes:
        operation: last operation that wrote any byte of the region.
        access: last write, if it covers the complete region; else NONE.
    """

    operation: Array
    access: Array


def scan_kernel(name: str, state: int, body: Callable[[Scan], None]) -> KernelSpec:
    """Return the kernel of a scan with ``state`` arrays of state."""

    def write(host: Host) -> str:
        scan = Scan(host, state)
        body(scan)
        return scan.e.finish()

    return KernelSpec(f"lower {name}", write)


assert READ_ONLY < 0  # distinguishable from a region's number by ``exists``
