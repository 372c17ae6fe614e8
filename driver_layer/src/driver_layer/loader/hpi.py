"""Host-parsed inference: a blob that is loaded for one user and can run repeatedly.

The constructor checks the blob, ``load`` places and relocates it, ``apply_input_output`` binds the
caller's buffers, ``clone`` loads it for a second user without loading the weights again.

Source: docs/reference/elf.md#loader-checks, docs/reference/elf.md#loading,
docs/reference/elf.md#loader-errors, docs/reference/elf.md#memory-kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from driver_layer.abi import elf
from driver_layer.abi.elf import SectionFlag, SectionType
from driver_layer.abi.layout import filled
from driver_layer.abi.platforms import CMX_METADATA_ADDRESS, CMX_WORKSPACE_ADDRESS, Platform
from driver_layer.abi.tasks import HOST_PARSED_INFERENCE, MAPPED_INFERENCE
from driver_layer.errors import DriverUsageError, RelocError
from driver_layer.loader.kernels import verify_kernels
from driver_layer.loader.metadata import NetworkMetadata, read_network
from driver_layer.loader.place import Placement, give_back, place
from driver_layer.loader.read import Blob, Buffer, Section, read_blob
from driver_layer.loader.relocate import RelocationTable, Words, apply
from driver_layer.loader.strides import Strides
from driver_layer.loader.user_relocations import (
    Bound,
    UserRelocations,
    bound_buffers,
    user_relocations,
)
from driver_layer.loader.verify import find_entry, verify
from driver_layer.loader.workloads import verify_workloads
from driver_layer.npu.memory import AddressSpace, Allocation, MemoryKind
from driver_layer.npu.program import BlobKey, Footprint

_OVERRIDDEN = {
    SectionType.VPU_SHT_CMX_METADATA: CMX_METADATA_ADDRESS,
    SectionType.VPU_SHT_CMX_WORKSPACE: CMX_WORKSPACE_ADDRESS,
}
"""Addresses that replace those of the blob's symbols of these sections, on platforms whose runtime
has no symbol table."""

_INPUTS, _OUTPUTS = SectionFlag.VPU_SHF_USERINPUT, SectionFlag.VPU_SHF_USEROUTPUT

_DIRECT_ACCESS = 1

_DENSE: Mapping[int, Strides] = {}
"""Strides of tensors that are all dense."""

_MOST_KNOWN = 64
"""Number of sets of buffers for which an inference keeps the generations of patched memory."""


class HostParsedInference:
    """A blob, checked for a platform.

    Args:
        blob: the file, or the result of ``read_blob``. The file's bytes must not change during the
            lifetime of this object: constants are used in place.
        platform: the device to run on.

    Raises:
        BlobError: the blob is malformed, or for another platform or version.
    """

    def __init__(self, blob: Blob | Buffer, platform: Platform) -> None:
        self._blob = blob if isinstance(blob, Blob) else read_blob(blob)
        self._platform = platform
        verify(self._blob, platform)
        self.metadata: NetworkMetadata = read_network(self._blob)
        self._entry = find_entry(self._blob)
        self._blob_key = BlobKey()
        self._memory: AddressSpace | None = None
        self._placement: Placement | None = None
        self._record: Allocation | None = None
        self._user: dict[SectionFlag, list[UserRelocations]] = {}
        self._applied: dict[SectionFlag, tuple[Bound, ...]] = {}
        self._known: dict[tuple[Bound, ...], list[tuple[Allocation, int]]] = {}
        """Patched allocations and their generations, by recently bound buffers."""
        self._layout: tuple[tuple[Strides, ...], BlobKey] = (), self._blob_key
        """Strides of the last footprint, and the key of inferences with these strides."""

    @property
    def address(self) -> int:
        """Device address of the HOST_PARSED_INFERENCE record.

        Raises:
            DriverUsageError: the inference is not loaded.
        """
        if self._record is None:
            raise DriverUsageError("the inference is not loaded; call load() first")
        return self._record.address

    @property
    def loaded(self) -> bool:
        """True while the inference is in device memory."""
        return self._record is not None

    def footprint(self) -> Footprint:
        """Return all memory that the inference accesses with the bound buffers.

        Raises:
            DriverUsageError: the inference is not loaded, or no buffers are bound.
        """
        if self._record is None or self._placement is None or len(self._applied) < 2:
            raise DriverUsageError("no buffers are bound; call apply_input_output() first")
        own = (*self._placement.allocations.values(), self._record)
        spans = [(one.address, one.size) for one in own]
        bound = (*self._applied[_INPUTS], *self._applied[_OUTPUTS])
        tensors = (*self.metadata.inputs, *self.metadata.outputs)
        spans += [
            (address, tensor.extent(strides))
            for (address, strides), tensor in zip(bound, tensors, strict=True)
        ]
        key = self._key(tuple(strides for _, strides in bound))
        return Footprint(key, [span for span in spans if span[1]])

    def _key(self, strides: tuple[Strides, ...]) -> BlobKey:
        """Return a key that only inferences with the same descriptors share."""
        if not any(strides):
            return self._blob_key
        if self._layout[0] != strides:
            self._layout = strides, BlobKey()
        return self._layout[1]

    def load(self, memory: AddressSpace) -> None:
        """Place the blob in device memory and relocate all but the user's buffers.

        Raises:
            OutOfMemory: the blob does not fit; nothing stays allocated.
            RelocError, WorkloadError, KernelError: a relocation, a DPU workload or a SHAVE kernel
                is malformed.
        """
        self._load(memory, None)

    def clone(self) -> HostParsedInference:
        """Load the blob for a second user; both share the memory that is only read.

        Raises:
            DriverUsageError: the inference is not loaded.
            OutOfMemory: the private parts do not fit.
        """
        if self._memory is None or self._placement is None:
            raise DriverUsageError("only a loaded inference can be cloned")
        twin = HostParsedInference.__new__(HostParsedInference)
        twin._blob, twin._platform = self._blob, self._platform
        twin.metadata, twin._entry, twin._blob_key = self.metadata, self._entry, self._blob_key
        twin._memory = twin._placement = twin._record = None
        twin._user, twin._applied, twin._known = {}, {}, {}
        twin._layout = (), self._blob_key
        twin._load(self._memory, self._placement)
        return twin

    def free(self) -> None:
        """Free the memory; a second call completes an interrupted one, else it does nothing."""
        if self._memory is not None and self._record is not None:
            give_back(self._memory, self._record)
        if self._placement is not None:
            self._placement.free()
        self._record = self._placement = self._memory = None
        self._user, self._applied, self._known = {}, {}, {}

    def apply_input_output(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        strides: Mapping[int, Strides] = _DENSE,
    ) -> None:
        """Bind the caller's buffers; may be repeated before each run.

        Recently bound buffers get the same generations again, so prepared programs are reused.

        Args:
            inputs: device address of each input, in the order of the metadata.
            outputs: device address of each output.
            strides: strides of tensors that are not dense, by the number of the tensor; inputs
                come first. Only tensors with ``dynamic_strides`` take them.

        Raises:
            DriverUsageError: the inference is not loaded, the number of addresses is wrong, or a
                tensor takes no strides.
            RelocError: the blob's descriptors cannot express the strides.
        """
        if self._record is None:
            raise DriverUsageError("the inference is not loaded; call load() first")
        given = bound_buffers(inputs, self.metadata.inputs, strides, first=0)
        taken = bound_buffers(outputs, self.metadata.outputs, strides, first=len(inputs))
        for side, buffers in ((_INPUTS, given), (_OUTPUTS, taken)):
            if self._applied.get(side) == buffers:
                continue
            self._applied.pop(side, None)
            for relocations in self._user.get(side, ()):
                relocations.apply(buffers)
            self._applied[side] = buffers
        self._recall((*given, *taken))

    def _recall(self, buffers: tuple[Bound, ...]) -> None:
        """Restore the generations that patched memory had with these buffers."""
        found = self._known.pop(buffers, None)
        if found is None:
            users = [each.target for side in self._user.values() for each in side]
            found = [(target, target.generation) for target in users]
            if len(self._known) == _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        for target, generation in found:
            target.generation = generation
        self._known[buffers] = found

    def _load(self, memory: AddressSpace, shared: Placement | None) -> None:
        if self._memory is not None:
            raise DriverUsageError("the inference is loaded already")
        try:
            self._memory = memory
            self._placement = place(self._blob, memory, shared)
            self._relocate(self._placement)
            root = self._placement.allocations[self._entry]
            if shared is None:  # a clone has the same tasks
                found = root.data[: MAPPED_INFERENCE.itemsize].view(MAPPED_INFERENCE)[0]
                verify_workloads(memory, found, self._platform, self._blob)
                verify_kernels(memory, found, self._platform, self._blob)
            size = HOST_PARSED_INFERENCE.itemsize
            self._record = memory.allocate(size, MemoryKind.FW, writable=False)
            self._record.write(0, self._host_record(root.address))
        except BaseException:
            self.free()
            raise

    def _host_record(self, root_address: int) -> bytes:
        network = self.metadata
        return filled(
            HOST_PARSED_INFERENCE,
            resource_requirements=(network.slice_length, network.tile_count, network.barriers),
            access_mode=_DIRECT_ACCESS,
            mapped_inference=(root_address, 1),
        ).tobytes()

    def _relocate(self, placement: Placement) -> None:
        """Apply relocations that do not depend on the user's buffers; store the others."""
        tables = {elf.VPU_RT_SYMTAB: self._runtime_values()}
        for section in self._blob.of_type(SectionType.SHT_RELA):
            target = placement.allocations[section.info]
            side = section.flags & elf.USER_FLAGS
            if side:
                pending = user_relocations(self._blob, section, target)
                self._user.setdefault(side, []).append(pending)
                continue
            table = RelocationTable(section.name, section.records(elf.RELA), target.size)
            if section.link not in tables:
                symtab = self._blob.sections[section.link]
                tables[section.link] = self._symbol_values(symtab, placement)
            addresses, sizes = tables[section.link]
            unplaced = addresses[table.symbols] == _UNPLACED
            if unplaced.any():
                index = int(unplaced.argmax())
                raise RelocError(
                    f"symbol {table.symbols[index]} has no address",
                    section.name,
                    index * elf.RELA.itemsize,
                )
            apply(table, target.data, addresses, sizes)
            target.changed()

    def _runtime_values(self) -> tuple[Words, Words]:
        """Return addresses and sizes of the runtime's supported symbols: the CMX workspace."""
        address, size = CMX_WORKSPACE_ADDRESS, self._platform.workspace_bytes
        return np.array([address], np.uint64), np.array([size], np.uint64)

    def _symbol_values(self, symtab: Section, placement: Placement) -> tuple[Words, Words]:
        """Return addresses and sizes of a table's symbols."""
        records = symtab.records(elf.SYM)
        bases = np.full(len(self._blob.sections) + 1, _UNPLACED, np.uint64)
        for index, allocation in placement.allocations.items():
            bases[index] = allocation.address
        homes = np.minimum(records["st_shndx"].astype(np.intp), len(self._blob.sections))
        values = bases[homes] + records["st_value"]
        values[bases[homes] == _UNPLACED] = _UNPLACED
        overridden = {} if self._platform.runtime_symbols else _OVERRIDDEN
        for kind, address in overridden.items():
            for section in self._blob.of_type(kind):
                values[homes == section.index] = address
        return values, records["st_size"].astype(np.uint64)


_UNPLACED = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Placeholder for the address of a section that is not in memory."""
