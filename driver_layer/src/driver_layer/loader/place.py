"""Placement of a blob's sections in device memory.

Sections that are neither written nor patched – the weights – are used in place in the file and are
shared between clones; all others are copied for each clone.

Source: docs/reference/elf.md#loading, docs/reference/elf.md#memory-kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakSet

import numpy as np

from driver_layer.abi.elf import USER_FLAGS, SectionFlag, SectionType
from driver_layer.loader.read import Blob, Section
from driver_layer.npu.memory import AddressSpace, Allocation, MemoryKind


class _User:
    """Token of a placement that uses the shared allocations."""


@dataclass(slots=True)
class _Shared:
    """Allocations that all clones share, freed with the last clone."""

    memory: AddressSpace
    allocations: dict[int, Allocation] = field(default_factory=dict[int, Allocation])
    users: WeakSet[_User] = field(default_factory=WeakSet[_User])
    """Weak: a placement that was interrupted before it was returned no longer counts."""

    def release(self, user: _User) -> None:
        """Remove a user; free the allocations if it was the last one."""
        self.users.discard(user)
        if not self.users:
            for allocation in self.allocations.values():
                give_back(self.memory, allocation)


@dataclass(slots=True)
class Placement:
    """Allocations of the sections of one clone, by section index."""

    memory: AddressSpace
    shared: _Shared
    private: dict[int, Allocation] = field(default_factory=dict[int, Allocation])
    user: _User = field(default_factory=_User)
    """Key of this placement among the users of ``shared``."""

    @property
    def allocations(self) -> dict[int, Allocation]:
        """Allocations of all sections, shared and private."""
        return {**self.shared.allocations, **self.private}

    def free(self) -> None:
        """Free all memory that no other clone needs; an interrupted call may be repeated."""
        for allocation in self.private.values():
            give_back(self.memory, allocation)
        self.private = {}
        self.shared.release(self.user)


def place(blob: Blob, memory: AddressSpace, original: Placement | None) -> Placement:
    """Allocate and fill the memory of a blob's sections.

    Args:
        blob: a verified blob.
        memory: the memory to allocate from.
        original: the placement to share allocations with, or None.

    Raises:
        OutOfMemory: the blob does not fit; nothing stays allocated.
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


def give_back(memory: AddressSpace, allocation: Allocation) -> None:
    """Free an allocation unless it was freed before."""
    if memory.find(allocation.address) is allocation:
        memory.free(allocation)


def needs_memory(section: Section) -> bool:
    """Return whether a section is placed: it is not empty and not one of the user's buffers."""
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


def _copy(section: Section, memory: AddressSpace) -> Allocation:
    writable = section.has(SectionFlag.SHF_WRITE)
    allocation = memory.allocate(section.size, _kind(section), writable)
    allocation.scratch = section.type == SectionType.SHT_NOBITS
    if section.type == SectionType.SHT_PROGBITS:
        allocation.write(0, np.frombuffer(section.data, np.uint8))
    return allocation


def _kind(section: Section) -> MemoryKind:
    """Return the kind of memory for a section's flags, as the public driver's manager does."""
    if section.has(SectionFlag.SHF_EXECINSTR):
        return MemoryKind.FW
    if section.has(SectionFlag.VPU_SHF_PROC_SHAVE):
        return MemoryKind.SHAVE
    return MemoryKind.DMA
