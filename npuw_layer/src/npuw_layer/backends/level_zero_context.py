"""Memory of an NPU: allocated, mapped from the host, shared with processes, or a caller's own."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from driver_layer import ze
from npuw_layer.backends.level_zero_memory import (
    DeviceMemory,
    reported,
)
from npuw_layer.backends.protocols import Array, Contexts, Memory, RemoteMemory
from npuw_layer.backends.release import release_waiting
from npuw_layer.errors import DeviceError, RemoteError

_DESCRIPTOR = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF
_Chained = (
    ze.ze_external_memory_export_desc_t
    | ze.ze_external_memory_import_fd_t
    | ze.ze_external_memmap_sysmem_ext_desc_t
)


class LevelZeroContext:
    """One NPU and the Level Zero context of its memory.

    It has the abilities ``SharingDevice`` and ``ImportsMemory`` of ``protocols``.

    Args:
        platform: the simulated NPU, e.g. "4000".
        contexts: holder of the context.

    Raises:
        DeviceError: no such platform exists.
    """

    def __init__(self, platform: str, contexts: Contexts) -> None:
        with reported(f"NPU {platform}"):
            driver = ze.simulated_driver(platform)
            (self._device,) = ze.zeDeviceGet(driver)
            self._context = contexts.of(driver, partial(ze.zeContextCreate, driver))

    @property
    def memory_space(self) -> ze.ze_context_handle_t:
        """The context of the memory; memory of other contexts is inaccessible."""
        return self._context

    @property
    def handle(self) -> ze.ze_device_handle_t:
        """Level Zero's handle of the NPU."""
        return self._device

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Allocate zeroed memory; the last reference, including programs, releases it.

        Raises:
            DeviceError: no memory is left.
        """
        release_waiting()
        with reported(f"allocating {nbytes} bytes"):
            memory = ze.zeMemAllocShared(self._context, nbytes, 0, self._device)
        return DeviceMemory(self._context, memory, held=True)

    def map_host(self, data: Array) -> DeviceMemory | None:
        """Map bytes of the host, which begin at a page, for the device to read in place.

        The last reference to the result unmaps them. None if the bytes are not aligned.

        Raises:
            DeviceError: the device has no addresses left.
        """
        release_waiting()
        with reported(f"mapping {data.nbytes} bytes"):
            try:
                chained = ze.ze_external_memmap_sysmem_ext_desc_t(data)
                return self._external(data.nbytes, chained, read_only=True, held=True)
            except ze.ZeError as error:
                if "UNSUPPORTED_ALIGNMENT" in error.code.name:
                    return None
                raise

    def allocate_shared(self, nbytes: int) -> DeviceMemory:
        """Allocate memory that can be exported; see ``protocols.SharingDevice``.

        Raises:
            DeviceError: no memory is left.
        """
        release_waiting()
        with reported(f"sharing {nbytes} bytes"):
            chained = ze.ze_external_memory_export_desc_t(_DESCRIPTOR)
            return self._external(nbytes, chained, read_only=False, held=True)

    def export(self, memory: Memory) -> int:
        """Return a descriptor of memory for another process.

        Raises:
            DeviceError: the memory was not allocated by ``allocate_shared``.
        """
        if not isinstance(memory, DeviceMemory):
            raise DeviceError("the memory was not allocated on this device")
        asked = ze.ze_external_memory_export_fd_t(_DESCRIPTOR)
        with reported("exporting memory"):
            found = ze.zeMemGetAllocProperties(self._context, memory.address, asked).pNext
        if found is None:
            raise DeviceError("the memory was not allocated by allocate_shared")
        return found.fd

    def attach(self, descriptor: int, nbytes: int) -> DeviceMemory:
        """Map exported memory for reading.

        Raises:
            DeviceError: the descriptor is not such memory, or has fewer bytes.
        """
        release_waiting()
        with reported(f"sharing {nbytes} bytes"):
            chained = ze.ze_external_memory_import_fd_t(_DESCRIPTOR, descriptor)
            return self._external(nbytes, chained, read_only=True, held=True)

    def allocate_remote(self, nbytes: int) -> DeviceMemory:
        """Allocate memory of a remote tensor; see ``protocols.ImportsMemory``.

        Raises:
            DeviceError: no memory is left.
        """
        with reported(f"zeMemAllocHost of {nbytes} bytes"):
            return DeviceMemory(self._context, ze.zeMemAllocHost(self._context, nbytes))

    def find_memory(self, handle: object) -> tuple[DeviceMemory, int]:
        """Find memory that was allocated through Level Zero, by object or address.

        Raises:
            RemoteError: the handle is not memory of this context.
        """
        if not isinstance(handle, ze.Memory | int) or isinstance(handle, bool):
            raise RemoteError(
                f"SHARED_BUF: {_kind(handle)} was not allocated through Level Zero. For memory of "
                "malloc, new or numpy, use CPU_VA if it consists of complete pages; otherwise copy "
                "it into an L0_INTERNAL_BUF tensor with copy_from"
            )
        found = self._context.find(handle) if self._context.alive else None
        if found is None:
            raise RemoteError(
                f"SHARED_BUF: {_kind(handle)} is not, or no longer, memory of this context. "
                "Allocate it with zeMemAllocHost, -Shared or -Device on "
                "get_params()['L0_CONTEXT'], or copy it from its context"
            )
        offset = handle - found.address if isinstance(handle, int) else 0
        return DeviceMemory(self._context, found), offset

    def import_descriptor(self, descriptor: int, nbytes: int, read_only: bool) -> DeviceMemory:
        """Map a DMA-BUF of another context or process; the caller keeps the descriptor.

        Raises:
            RemoteError: the descriptor is not such memory, or has fewer bytes.
        """
        can = ze.zeDeviceGetExternalMemoryProperties(self._device).memoryAllocationImportTypes
        if not can & _DESCRIPTOR:
            raise RemoteError("SHARED_BUF: the driver cannot import descriptors; copy the memory")
        chained = ze.ze_external_memory_import_fd_t(_DESCRIPTOR, descriptor)
        try:
            return self._external(nbytes, chained, read_only)
        except ze.ZeError as error:
            raise RemoteError(f"SHARED_BUF: descriptor {descriptor}: {error}") from error

    def import_host(self, data: Array, read_only: bool) -> DeviceMemory:
        """Map pages of the host; see ``protocols.ImportsMemory``.

        Raises:
            DeviceError: the device has no addresses left.
        """
        with reported(f"importing {data.size} bytes"):
            chained = ze.ze_external_memmap_sysmem_ext_desc_t(data)
            return self._external(data.size, chained, read_only)

    def copy(
        self, target: RemoteMemory, at: int, source: RemoteMemory, begin: int, nbytes: int
    ) -> None:
        """Copy within the context on the device, and wait.

        Raises:
            DeviceError: Level Zero rejects the copy.
        """
        context, device = self._context, self._device
        with reported(f"copying {nbytes} bytes"), ExitStack() as made:
            commands = ze.zeCommandListCreate(context, device)
            made.callback(ze.zeCommandListDestroy, commands)
            places = (target.address + at, source.address + begin)
            ze.zeCommandListAppendMemoryCopy(commands, *places, nbytes)
            ze.zeCommandListClose(commands)
            queue = ze.zeCommandQueueCreate(context, device)
            made.callback(ze.zeCommandQueueDestroy, queue)
            ze.zeCommandQueueExecuteCommandLists(queue, [commands])
            ze.zeCommandQueueSynchronize(queue)

    def _external(
        self, nbytes: int, chained: _Chained, read_only: bool, held: bool = False
    ) -> DeviceMemory:
        kinds = ze.ze_host_mem_alloc_flags_t
        flags = kinds.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY if read_only else kinds.NONE
        desc = ze.ze_host_mem_alloc_desc_t(flags, chained)
        memory = ze.zeMemAllocHost(self._context, nbytes, host_desc=desc)
        return DeviceMemory(self._context, memory, held)


def _kind(handle: object) -> str:
    if isinstance(handle, ze.Memory):
        return f"memory at {handle.address:#x}"
    is_address = isinstance(handle, int) and not isinstance(handle, bool)
    return f"address {handle:#x}" if is_address else f"a {type(handle).__name__}"
