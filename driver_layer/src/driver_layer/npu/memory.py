"""The device's memory: an address space per context, with a range for each kind of memory.

Each Level Zero context has its own address space, as it has its own page tables on the device.
The address space does not contain CMX, which belongs to the tiles (``npu.cmx``). Memory of callers
lies either in the device's own range, or at addresses that the caller's process has chosen.

Source: linux drivers/accel/ivpu, whose ranges of 37XX serve all platforms here;
docs/reference/npu.md#address-ranges, docs/reference/elf.md#memory-kinds.
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
from driver_layer.support.pages import discard_pages

Bytes = npt.NDArray[np.uint8]

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class AddressRange:
    """The range of the address space that one kind of memory is allocated from."""

    begin: int
    end: int


class MemoryKind(Enum):
    """The user of an allocation; each kind has its own range of addresses."""

    FW = AddressRange(0xA0000000, 0xBFF00000)
    """The management core: task lists, the mapped inference."""
    SHAVE = AddressRange(0x180000000, 0x200000000)
    """SHAVE programs and their arguments."""
    DMA = AddressRange(0x200000000, 0x2200000000)
    """Transfers: weights, activations, the caller's tensors."""


@dataclass(eq=False, slots=True)
class Allocation:
    """Memory of the device: ``data`` has its bytes, ``address`` is its device address."""

    kind: MemoryKind
    address: int
    data: Bytes
    writable: bool = True
    generation: int = field(default=0)
    """Number of the content, by which programs decoded from it detect that they are stale. Code
    that restores an earlier content may restore that content's number."""
    scratch: bool = False
    """True if the content is needed during an inference only."""
    _newest: int = field(default=0)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.data.size

    @property
    def end(self) -> int:
        """First address after the allocation."""
        return self.address + self.data.size

    def changed(self) -> None:
        """Assign a new generation, after the host wrote new content."""
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
    """Allocate zeroed host memory that begins at a page boundary, as device memory does.

    Data that is aligned on the device is thus aligned for the host's vector instructions, too.

    Raises:
        OutOfMemory: the host has no such memory.
    """
    try:
        raw = np.zeros(size + PAGE_BYTES, np.uint8)
    except (MemoryError, ValueError, OverflowError):  # raised by numpy for sizes beyond any host
        raise OutOfMemory(f"the host has no {size} bytes left") from None
    begin = -raw.ctypes.data % PAGE_BYTES
    return raw[begin : begin + size]


_ADDRESS = attrgetter("address")


class AddressSpace:
    """The memory that one context's programs can access.

    The class is thread-safe: hosts allocate and free while the device executes. A signal handler
    may raise at any bytecode, so each change is one call into C on one list.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allocations: list[Allocation] = []
        """Allocations in the order of their addresses."""
        self._next: dict[MemoryKind, int] = {}
        """End of the latest allocation, by kind; only a hint where to begin the search."""
        self.frees = 0
        """Number of frees, by which prepared tasks detect that their views may be stale; an
        interrupted free may count without freeing."""
        self.scratch_in_use = True
        """False from a release of scratch memory until an inference uses it again."""

    def allocate(self, size: int, kind: MemoryKind, writable: bool = True) -> Allocation:
        """Allocate ``size`` zeroed bytes at a page boundary of the kind's range.

        Raises:
            DriverUsageError: the size is not positive.
            OutOfMemory: no gap of the range is wide enough, or the host has no memory left.
        """
        if size <= 0:
            raise DriverUsageError(f"cannot allocate {size} bytes")
        return self._insert(zeroed(size), kind, writable)

    def map(self, data: Bytes, kind: MemoryKind, writable: bool = True) -> Allocation:
        """Map host memory into the address space, without a copy."""
        return self._insert(data, kind, writable)

    def map_at(self, begin: int, data: Bytes, writable: bool = True) -> Allocation:
        """Map host memory at an address that the host has chosen, as a device with an MMU can.

        Raises:
            DriverUsageError: some of the addresses are mapped already, or lie in the ranges of the
                device's own addresses.
        """
        with self._lock:
            index = bisect_left(self._allocations, begin + data.size, key=_ADDRESS)
            before = self._allocations[index - 1].end if index else 0
            if begin < max(before, MemoryKind.DMA.value.end):
                raise DriverUsageError(
                    f"{data.size} bytes at {begin:#x} are memory of the device already"
                )
            allocation = Allocation(MemoryKind.DMA, begin, data, writable)
            self._allocations.insert(index, allocation)
            return allocation

    def free(self, allocation: Allocation) -> None:
        """Remove an allocation from the address space.

        Raises:
            DriverUsageError: the allocation is not, or no longer, in this address space.
        """
        with self._lock:
            index = bisect_left(self._allocations, allocation.address, key=_ADDRESS)
            if index >= len(self._allocations) or self._allocations[index] is not allocation:
                raise DriverUsageError(f"no allocation of this context at {allocation.address:#x}")
            self.frees += 1
            del self._allocations[index]

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that contains an address."""
        with self._lock:
            index = bisect_right(self._allocations, address, key=_ADDRESS) - 1
            if index < 0 or address >= self._allocations[index].end:
                return None
            return self._allocations[index]

    def view(self, address: int, size: int, write: bool = False) -> Bytes:
        """Return ``size`` bytes at a device address, for the device to read or write.

        Raises:
            DeviceFault: the bytes are not all in one allocation, or not writable.
        """
        allocation = self.find(address)
        if allocation is None or address + size > allocation.end:
            raise DeviceFault(f"access to {size} unmapped bytes", address=address)
        if write and not allocation.writable:
            raise DeviceFault("write to read-only memory", address=address)
        offset = address - allocation.address
        return allocation.data[offset : offset + size]

    def allocations(self) -> tuple[Allocation, ...]:
        """Return all allocations, in the order of their addresses."""
        with self._lock:
            return tuple(self._allocations)

    def release_scratch(self) -> None:
        """Return scratch memory to the host; no inference runs, and addresses stay valid."""
        scratch = [one for one in self.allocations() if one.scratch]
        if scratch and all([discard_pages(one.data) for one in scratch]):
            self.scratch_in_use = False

    @property
    def allocated_bytes(self) -> int:
        """Number of allocated bytes, without scratch memory that was released."""
        with self._lock:
            return sum(
                allocation.size
                for allocation in self._allocations
                if self.scratch_in_use or not allocation.scratch
            )

    def _insert(self, data: Bytes, kind: MemoryKind, writable: bool) -> Allocation:
        """Insert an allocation; the lock makes finding a gap and occupying it one step."""
        with self._lock:
            address = self._find_gap(max(data.size, 1), kind)
            allocation = Allocation(kind, address, data, writable)
            insort(self._allocations, allocation, key=_ADDRESS)
            return allocation

    def _find_gap(self, size: int, kind: MemoryKind) -> int:
        """Return a next-fit address at a page boundary; a free guard page follows each allocation.

        The search continues where the last one of the kind ended, so that many allocations do not
        each scan all others; it restarts at the beginning if no gap is left there.
        """
        for begin in (self._next.get(kind, kind.value.begin), kind.value.begin):
            found = self._gap_behind(begin, size, kind)
            if found is not None:
                self._next[kind] = found + size
                return found
        raise OutOfMemory(f"no {size} bytes left in the {kind.name} range")

    def _gap_behind(self, begin: int, size: int, kind: MemoryKind) -> int | None:
        """Return the first gap from an address on; None if no gap is wide enough."""
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
    """Return the first possible address after an allocation that ends at ``end``."""
    return -(-end // PAGE_BYTES) * PAGE_BYTES + PAGE_BYTES
