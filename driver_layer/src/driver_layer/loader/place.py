"""Places a blob's sections in device memory.

What nobody writes or patches – the weights – is used where the file has it, and is shared between
clones; everything else is copied for each user.

Source: fact sheet elf_driver §2.3, §2.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakSet

import numpy as np

from driver_layer.abi.elf import USER_FLAGS, SectionFlag, SectionType
from driver_layer.loader.read import Blob, Section
from driver_layer.npu.memory import Allocation, Bytes, MemoryKind


class ReadableMemory(Protocol):
    """Device memory to look into; ``npu.memory.AddressSpace`` is one."""

    def view(self, address: int, size: int) -> Bytes:
        """Give bytes at a device address; raises DeviceFault if they are not there."""
        ...

    def find(self, address: int) -> Allocation | None:
        """Give the allocation that contains an address."""
        ...


class BufferManager(ReadableMemory, Protocol):
    """Gives the loader device memory; ``npu.memory.AddressSpace`` is one."""

    def allocate(self, size: int, kind: MemoryKind, writable: bool = True) -> Allocation:
        """Take zeroed memory; raises OutOfMemory."""
        ...

    def map(self, data: Bytes, kind: MemoryKind, writable: bool = True) -> Allocation:
        """Make the host's bytes reachable in place; raises OutOfMemory."""
        ...

    def free(self, allocation: Allocation) -> None:
        """Give memory back."""
        ...


class _User:
    """Stands for a placement that uses what clones share."""


@dataclass(slots=True)
class _Shared:
    """Allocations of all clones, freed with the last of them."""

    memory: BufferManager
    allocations: dict[int, Allocation] = field(default_factory=dict[int, Allocation])
    users: WeakSet[_User] = field(default_factory=WeakSet[_User])
    """One whose placement was interrupted before anybody was given it is none any more."""

    def release(self, user: _User) -> None:
        """Let a user go, if it is one."""
        self.users.discard(user)
        if not self.users:
            for allocation in self.allocations.values():
                give_back(self.memory, allocation)


@dataclass(slots=True)
class Placement:
    """Where the sections of one user's inference lie, by section index."""

    memory: BufferManager
    shared: _Shared
    private: dict[int, Allocation] = field(default_factory=dict[int, Allocation])
    user: _User = field(default_factory=_User)
    """Key of this placement among the users of ``shared``."""

    @property
    def allocations(self) -> dict[int, Allocation]:
        """All sections in memory."""
        return {**self.shared.allocations, **self.private}

    @property
    def private_bytes(self) -> int:
        """Bytes that only this user has."""
        return sum(allocation.size for allocation in self.private.values())

    def free(self) -> None:
        """Give everything back that no other user needs; what was interrupted may be repeated."""
        for allocation in self.private.values():
            give_back(self.memory, allocation)
        self.private = {}
        self.shared.release(self.user)


def place(blob: Blob, memory: BufferManager, original: Placement | None) -> Placement:
    """Allocate and fill what a blob needs.

    Args:
        blob: checked.
        memory: where to.
        original: the placement that this one may share with.

    Raises:
        OutOfMemory: it does not fit; nothing stays allocated.
    """
    patched = {section.info for section in blob.of_type(SectionType.SHT_RELA)}
    placement = Placement(memory, original.shared if original else _Shared(memory))
    try:
        placement.shared.users.add(placement.user)
        for section in blob.sections:
            if not needs_memory(section):
                continue
            if not _is_shared(section, patched):
                placement.private[section.index] = _copy(section, memory)
            elif original is None:
                data = np.frombuffer(section.data, np.uint8)
                mapped = memory.map(data, _kind(section), writable=False)
                placement.shared.allocations[section.index] = mapped
    except BaseException:
        placement.free()
        raise
    return placement


def give_back(memory: BufferManager, allocation: Allocation) -> None:
    """Free an allocation, unless that was done."""
    if memory.find(allocation.address) is allocation:
        memory.free(allocation)


def needs_memory(section: Section) -> bool:
    """Tell whether a section is to be placed; what the user brings, and what is empty, is not."""
    return (
        section.has(SectionFlag.SHF_ALLOC)
        and section.type in (SectionType.SHT_PROGBITS, SectionType.SHT_NOBITS)
        and not section.has(USER_FLAGS)
        and section.size > 0
    )


def _is_shared(section: Section, patched: set[int]) -> bool:
    return (
        section.type == SectionType.SHT_PROGBITS
        and not section.has(SectionFlag.SHF_WRITE)
        and section.index not in patched
    )


def _copy(section: Section, memory: BufferManager) -> Allocation:
    writable = section.has(SectionFlag.SHF_WRITE)
    allocation = memory.allocate(section.size, _kind(section), writable)
    if section.type == SectionType.SHT_PROGBITS:
        allocation.write(0, np.frombuffer(section.data, np.uint8))
    return allocation


def _kind(section: Section) -> MemoryKind:
    """Whose memory: flags decide, as the public driver's buffer manager does."""
    if section.has(SectionFlag.SHF_EXECINSTR):
        return MemoryKind.FW
    if section.has(SectionFlag.VPU_SHF_PROC_SHAVE):
        return MemoryKind.SHAVE
    return MemoryKind.DMA
