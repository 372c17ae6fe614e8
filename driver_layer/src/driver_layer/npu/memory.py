"""The device's memory: an address space of ranges by kind, mapped per context, with faults.

Each Level Zero context has an address space of its own, as each has its own page tables on the
device. CMX is not in it: that belongs to the tiles (``npu.cmx``).

Source: address ranges of linux drivers/accel/ivpu (40XX); fact sheet elf_driver §2.5.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from driver_layer.errors import DeviceFault, DriverUsageError, OutOfMemory

Bytes = npt.NDArray[np.uint8]

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class AddressRange:
    """A part of the address space that one kind of memory is taken from."""

    begin: int
    end: int


class MemoryKind(Enum):
    """Who must reach an allocation; each kind has a range of addresses of its own."""

    FW = AddressRange(0xA0000000, 0xBFF00000)
    """The management core: task lists, the mapped inference."""
    SHAVE = AddressRange(0x180000000, 0x200000000)
    """SHAVE programs and their arguments."""
    DMA = AddressRange(0x200000000, 0x2200000000)
    """Transfers: weights, activations, the caller's tensors."""


@dataclass(eq=False, slots=True)
class Allocation:
    """Memory of the device: ``data`` are its bytes, ``address`` is where the device sees them."""

    kind: MemoryKind
    address: int
    data: Bytes
    writable: bool = True
    generation: int = field(default=0)
    """Names the content, so that what was decoded from here can tell it is stale. Who knows that
    the content is again what it was may set the number that it had then."""
    _newest: int = field(default=0)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.data.size

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.data.size

    def changed(self) -> None:
        """Say that the host wrote: the content is one that was not here before."""
        self._newest += 1
        self.generation = self._newest

    def write(self, offset: int, content: bytes | Bytes) -> None:
        """Copy bytes from the host to ``offset``."""
        raw = np.frombuffer(content, np.uint8)
        if offset < 0 or offset + raw.size > self.data.size:
            raise DriverUsageError(
                f"{raw.size} bytes at {offset} do not fit an allocation of {self.data.size}"
            )
        self.data[offset : offset + raw.size] = raw
        self.changed()


def zeroed(size: int) -> Bytes:
    """Take bytes of the host that begin at a page of it, as what they stand for does.

    So what is aligned on the device is aligned for the host's vectors as well.

    Raises:
        OutOfMemory: the host has no such memory.
    """
    try:
        raw = np.zeros(size + PAGE_BYTES, np.uint8)
    except (MemoryError, ValueError, OverflowError):  # numpy's, for sizes beyond any host
        raise OutOfMemory(f"the host has no {size} bytes left") from None
    begin = -raw.ctypes.data % PAGE_BYTES
    return raw[begin : begin + size]


_ADDRESS = attrgetter("address")


class AddressSpace:
    """What one context's programs can reach.

    Any thread may use it: hosts allocate and free while the device executes. A signal's handler may
    raise at any bytecode, so each change is one call into C on one list.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allocations: list[Allocation] = []
        """In the order of their addresses."""
        self._next: dict[MemoryKind, int] = {}
        """Behind what was allocated last, by kind: where a search begins, no more."""
        self.frees = 0
        """Counts frees, so that prepared tasks can tell their views may be stale; an interrupted
        free may count and free nothing."""

    def allocate(self, size: int, kind: MemoryKind, writable: bool = True) -> Allocation:
        """Take ``size`` bytes, zeroed, at a page boundary of the kind's range.

        Raises:
            DriverUsageError: the size is not positive.
            OutOfMemory: no gap of the range is wide enough, or the host has no memory left.
        """
        if size <= 0:
            raise DriverUsageError(f"cannot allocate {size} bytes")
        return self._insert(zeroed(size), kind, writable)

    def map(self, data: Bytes, kind: MemoryKind, writable: bool = True) -> Allocation:
        """Make the host's bytes reachable in place, without a copy."""
        return self._insert(data, kind, writable)

    def free(self, allocation: Allocation) -> None:
        """Take an allocation out of the address space.

        Raises:
            DriverUsageError: it is not, or no longer, of this address space.
        """
        with self._lock:
            index = bisect_left(self._allocations, allocation.address, key=_ADDRESS)
            if index >= len(self._allocations) or self._allocations[index] is not allocation:
                raise DriverUsageError(f"no allocation of this context at {allocation.address:#x}")
            self.frees += 1
            del self._allocations[index]

    def find(self, address: int) -> Allocation | None:
        """Give the allocation that contains an address."""
        with self._lock:
            index = bisect_right(self._allocations, address, key=_ADDRESS) - 1
            if index < 0 or address >= self._allocations[index].end:
                return None
            return self._allocations[index]

    def view(self, address: int, size: int, write: bool = False) -> Bytes:
        """Give ``size`` bytes at a device address, as the device reads or writes them.

        Raises:
            DeviceFault: they are not all in one allocation, or may not be written.
        """
        allocation = self.find(address)
        if allocation is None or address + size > allocation.end:
            raise DeviceFault(f"access to {size} unmapped bytes", address=address)
        if write and not allocation.writable:
            raise DeviceFault("write to read-only memory", address=address)
        offset = address - allocation.address
        return allocation.data[offset : offset + size]

    def allocations(self) -> tuple[Allocation, ...]:
        """Give all allocations, in the order of their addresses."""
        with self._lock:
            return tuple(self._allocations)

    @property
    def allocated_bytes(self) -> int:
        """Bytes in use."""
        with self._lock:
            return sum(allocation.size for allocation in self._allocations)

    def _insert(self, data: Bytes, kind: MemoryKind, writable: bool) -> Allocation:
        """Give bytes a place: to find a gap and to take it is one step."""
        with self._lock:
            address = self._find_gap(max(data.size, 1), kind)
            allocation = Allocation(kind, address, data, writable)
            insort(self._allocations, allocation, key=_ADDRESS)
            return allocation

    def _find_gap(self, size: int, kind: MemoryKind) -> int:
        """Next fit at page boundaries; a page stays free behind each allocation to catch overruns.

        The search goes on where the last one of the kind ended, so that who allocates much does not
        look at all there is each time; from the beginning only if nothing is left there.
        """
        for begin in (self._next.get(kind, kind.value.begin), kind.value.begin):
            found = self._gap_behind(begin, size, kind)
            if found is not None:
                self._next[kind] = found + size
                return found
        raise OutOfMemory(f"no {size} bytes left in the {kind.name} range")

    def _gap_behind(self, begin: int, size: int, kind: MemoryKind) -> int | None:
        """The first place from an address on; None if there is none."""
        end = kind.value.end
        first = bisect_left(self._allocations, begin, key=_ADDRESS)
        before = self._allocations[first - 1].end if first else 0
        candidate = max(kind.value.begin, _behind(before), -(-begin // PAGE_BYTES) * PAGE_BYTES)
        for index in range(first, len(self._allocations)):
            allocation = self._allocations[index]
            if allocation.address >= end or candidate + size <= allocation.address - PAGE_BYTES:
                break
            candidate = max(candidate, _behind(allocation.end))
        return candidate if candidate + size <= end else None


def _behind(end: int) -> int:
    """Where something may begin behind what ends there."""
    return -(-end // PAGE_BYTES) * PAGE_BYTES + PAGE_BYTES
