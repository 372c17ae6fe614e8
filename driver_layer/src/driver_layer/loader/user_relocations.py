"""Relocations of one side's user buffers, applied whenever the caller binds other buffers.

Source: docs/reference/elf.md#loading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from driver_layer.abi.elf import DMA_SYMBOL, RELA, SYM, SectionType
from driver_layer.errors import DriverUsageError
from driver_layer.loader import relocate
from driver_layer.loader.metadata import TensorInfo
from driver_layer.loader.read import Blob, Section
from driver_layer.loader.relocate import RelocationTable, Words
from driver_layer.loader.strides import StridedTable, Strides, fit_descriptors
from driver_layer.npu.memory import Allocation, Bytes

Bound = tuple[int, Strides]
"""A caller's buffer: its device address, and the strides of the tensor in it."""


def bound_buffers(
    addresses: Sequence[int],
    tensors: Sequence[TensorInfo],
    strides: Mapping[int, Strides],
    first: int,
) -> tuple[Bound, ...]:
    """Pair the addresses of one side with strides.

    Args:
        addresses: one for each tensor.
        tensors: the side's tensors.
        strides: strides by number.
        first: number of the first tensor.

    Raises:
        DriverUsageError: the number of addresses is wrong, or a tensor takes no strides.
    """
    if len(addresses) != len(tensors):
        raise DriverUsageError(f"{len(addresses)} buffers for {len(tensors)} tensors")
    bound = tuple((at, strides.get(n, ())) for n, at in enumerate(addresses, first))
    for (_, given), tensor in zip(bound, tensors, strict=True):
        if given and not tensor.dynamic_strides:
            raise DriverUsageError(f"{tensor.name!r} takes no strides; bind a dense tensor")
    return bound


@dataclass(slots=True)
class _OfWords:
    """Relocations that patch addresses."""

    table: RelocationTable
    target: Allocation
    sizes: Words
    pristine: Bytes = field(init=False)
    """The patched bytes before relocation, as some relocations depend on them."""
    cells: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.cells = self.table.cells
        self.pristine = self.target.data[self.cells]

    def apply(self, buffers: Sequence[Bound]) -> None:
        """Patch for the side's buffers, undoing earlier patches; raises RelocError."""
        self.target.data[self.cells] = self.pristine
        addresses = np.array([0, *(address for address, _ in buffers)], np.uint64)
        relocate.apply(self.table, self.target.data, addresses, self.sizes)
        self.target.changed()


@dataclass(frozen=True, slots=True)
class _OfDescriptors:
    """Relocations that patch one side of DMA descriptors, whatever was there before."""

    table: StridedTable
    target: Allocation

    def apply(self, buffers: Sequence[Bound]) -> None:
        """Patch for the side's buffers; raises RelocError."""
        addresses = np.array([address for address, _ in buffers], np.uint64)
        given = [their for _, their in buffers]
        fit_descriptors(self.table, self.target.data, addresses, given)
        self.target.changed()


UserRelocations = _OfWords | _OfDescriptors
"""Relocations of one section for the buffers of one side, inputs or outputs."""


def user_relocations(blob: Blob, section: Section, target: Allocation) -> UserRelocations:
    """Return the relocations of a section that belongs to one side.

    Raises:
        RelocError: an entry is malformed.
    """
    entries, table = section.records(RELA), blob.sections[section.link]
    if table.type == SectionType.VPU_SHT_DMA_SYMBOLS:
        symbols = table.records(DMA_SYMBOL)
        return _OfDescriptors(StridedTable(section.name, entries, symbols, target.size), target)
    sizes = table.records(SYM)["st_size"].astype(np.uint64)
    return _OfWords(RelocationTable(section.name, entries, target.size), target, sizes)
