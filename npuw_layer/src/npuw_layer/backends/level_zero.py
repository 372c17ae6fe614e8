"""The NPU behind driver_layer's Level Zero as npuw's device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from driver_layer import ze
from driver_layer.abi.cost.dma import ddr_bytes_per_ns
from driver_layer.abi.cost.host import host_copy_ddr_bytes, host_copy_ns
from driver_layer.abi.platforms import PLATFORMS, Platform
from driver_layer.errors import DriverError
from driver_layer.mapped_file import mapped_file_of
from npuw_layer.backends.blob_constants import constant_spans
from npuw_layer.backends.level_zero_copies import CopyQueue, RecordedCopies
from npuw_layer.backends.level_zero_memory import Contexts, DeviceMemory, reported
from npuw_layer.backends.level_zero_programs import LoadedBlob
from npuw_layer.backends.protocols import Array, Compiler, Memory, Urgency
from npuw_layer.backends.release import release_waiting
from npuw_layer.errors import DeviceError, OptionError
from npuw_layer.execution.offload.ports import Cost, PieceCompiler, Span
from npuw_layer.execution.partition.ports import CompilesFunctions

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.pieces import CompiledFunction, CompiledPieces

_PRIORITIES = {
    "LOW": ze.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW,
    "MEDIUM": ze.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_NORMAL,
    "HIGH": ze.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH,
}
_WORKLOADS = {
    "DEFAULT": ze.ze_command_queue_workload_type_t.ZE_WORKLOAD_TYPE_DEFAULT,
    "EFFICIENT": ze.ze_command_queue_workload_type_t.ZE_WORKLOAD_TYPE_BACKGROUND,
}
_DESCRIPTOR = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF


class LevelZeroDevice:
    """A context and a queue on one NPU; satisfies ``backends.protocols.Device``.

    Args:
        compiler: makes the blobs.
        platform: which simulated NPU, e.g. "4000".
        contexts: where to take the context from; a new one if not given.

    Raises:
        DeviceError: there is no such platform.
    """

    def __init__(
        self,
        compiler: Compiler,
        platform: str,
        contexts: Contexts | None = None,
    ) -> None:
        self._compiler = compiler
        with reported(f"NPU {platform}"):
            driver = ze.simulated_driver(platform)
            (self._device,) = ze.zeDeviceGet(driver)
            self._context = (contexts or Contexts()).of(driver)
            self._queue = ze.zeCommandQueueCreate(self._context, self._device)
            self._copies = CopyQueue(self._context, self._device)
            self._urgency: Urgency = Urgency()
            self._profiling: ze.ze_graph_profiling_dditable_ext_t | None = None
            self._table: ze.ze_graph_dditable_ext_t = ze.zeDriverGetExtensionFunctionAddress(
                driver, ze.GRAPH_EXTENSION
            )

    @property
    def version(self) -> str:
        """Versions of compiler, loader and firmware, and the platform."""
        found = self._table.pfnDeviceGetGraphProperties2(self._device)
        elf, runtime = found.elfVersion, found.runtimeVersion
        return (
            f"{self._compiler.version} NPU {_label(self._device.platform)} "
            f"ELF {elf.major}.{elf.minor} MI {runtime.major}.{runtime.minor}"
        )

    @property
    def context(self) -> ze.ze_context_handle_t:
        """Where its memory and its graphs are; what is not of this context is out of reach."""
        return self._context

    @property
    def handle(self) -> ze.ze_device_handle_t:
        """The NPU as Level Zero knows it."""
        return self._device

    @property
    def allocated_bytes(self) -> int:
        """Device memory in use, that of mapped files included."""
        return self._table.pfnQueryContextMemory(self._context).allocated

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a static graph to a blob; see ``backends.protocols.Compiler.compile``."""
        return self._compiler.compile(model, config)

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give graphs that stand for a stateful one; see ``Compiler.foldings``."""
        return self._compiler.foldings(model)

    def constants(self, program: bytes | memoryview) -> list[tuple[int, int]]:
        """Tell where a blob has its weights; see ``backends.protocols.FindsConstants``."""
        return constant_spans(program)

    def load(self, program: bytes | memoryview) -> LoadedBlob:
        """Load a blob; it is unloaded when nobody holds it any more, programs included.

        Raises:
            DeviceError: it is no blob, or for another device, or does not fit.
        """
        release_waiting()
        desc = ze.ze_graph_desc_2_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, program)
        with reported("loading a blob"):
            graph = self._table.pfnCreate2(self._context, self._device, desc)
            self._table.pfnGraphInitialize(graph)
        return LoadedBlob(self._table, self._queue, graph, self._profiling, mapped_file_of(program))

    def set_urgency(self, urgency: Urgency) -> bool:
        """Let programs of what is loaded from now on be so urgent; see ``TakesTurns``."""
        if urgency != self._urgency:
            queue = ze.ze_command_queue_desc_t(priority=_PRIORITIES[urgency.priority])
            with reported(f"a queue for MODEL_PRIORITY = {urgency.priority}"):
                self._queue = ze.zeCommandQueueCreate(self._context, self._device, queue)
                queues: ze.ze_command_queue_npu_dditable_ext_t = (
                    ze.zeDriverGetExtensionFunctionAddress(self._device.driver, ze.QUEUE_EXTENSION)
                )
                queues.pfnSetWorkloadType(self._queue, _WORKLOADS[urgency.workload])
            self._urgency = urgency
        return True

    def profile_programs(self) -> None:
        """Let programs tell what their layers take; see ``backends.protocols.ProfilesPrograms``."""
        driver = self._device.driver
        self._profiling = ze.zeDriverGetExtensionFunctionAddress(driver, ze.PROFILING_EXTENSION)

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Take memory, zeroed; it goes back when nobody holds it any more, programs included.

        Raises:
            DeviceError: there is none left.
        """
        release_waiting()
        with reported(f"allocating {nbytes} bytes"):
            memory = ze.zeMemAllocShared(self._context, nbytes, 0, self._device)
        return DeviceMemory(self._context, memory, held=True)

    def compile_pieces(self, model: Model, config: Mapping[str, str]) -> CompiledPieces:
        """Cut a graph and compile the pieces; see ``execution.offload.ports.OffloadingDevice``.

        Raises:
            OptionError: the compiler cannot.
        """
        if not isinstance(self._compiler, PieceCompiler):
            raise OptionError("NPUW_WEIGHTS_OFFLOAD: the compiler does not cut models")
        return self._compiler.compile_pieces(model, config)

    def compile_function(self, model: Model, config: Mapping[str, str]) -> CompiledFunction:
        """Compile a part that is called several times; see ``CompilesFunctions``.

        Raises:
            OptionError: the compiler cannot.
        """
        if not isinstance(self._compiler, CompilesFunctions):
            raise OptionError("NPUW_FOLD: the compiler compiles no functions; set it to NO")
        return self._compiler.compile_function(model, config)

    def record_copies(self, spans: Sequence[Span]) -> RecordedCopies:
        """Get copies ready, to run on a queue beside that of programs.

        Raises:
            DeviceError: a span is not in memory of this device.
        """
        return self._copies.record(spans)

    def predict(self, program: bytes | memoryview) -> Cost:
        """What a blob costs, from its timeline.

        Raises:
            DeviceError: it is no blob, or for another device.
        """
        from driver_layer.npu.timeline import predict

        try:
            tasks = predict(program, self._device.platform)
        except DriverError as error:
            raise DeviceError(f"predicting a blob: {error}") from error
        return Cost(max(task.end_ns for task in tasks), sum(task.ddr_bytes for task in tasks))

    def predict_copy(self, nbytes: int) -> Cost:
        """What a copy from the host's memory costs."""
        platform = self._device.platform
        return Cost(host_copy_ns(platform, nbytes), host_copy_ddr_bytes(platform, nbytes))

    @property
    def ddr_bytes_per_ns(self) -> float:
        """The bandwidth of the device's memory."""
        return ddr_bytes_per_ns(self._device.platform)

    def map_host(self, data: Array) -> DeviceMemory | None:
        """Let the device read bytes of the host in place; they begin at a page.

        It reaches them until nobody holds what is returned any more.

        Raises:
            DeviceError: the device has no addresses left.
        """
        release_waiting()
        flag = ze.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
        desc = ze.ze_host_mem_alloc_desc_t(flag, ze.ze_external_memmap_sysmem_ext_desc_t(data))
        with reported(f"mapping {data.nbytes} bytes"):
            try:
                memory = ze.zeMemAllocHost(self._context, data.nbytes, host_desc=desc)
            except ze.ZeError as error:
                if "UNSUPPORTED_ALIGNMENT" in error.code.name:
                    return None
                raise
        return DeviceMemory(self._context, memory, held=True)

    def allocate_shared(self, nbytes: int) -> DeviceMemory:
        """Take memory that can be exported; see ``backends.protocols.SharingDevice``.

        Raises:
            DeviceError: there is none left.
        """
        return self._external(nbytes, ze.ze_external_memory_export_desc_t(_DESCRIPTOR))

    def export(self, memory: Memory) -> int:
        """Give a descriptor of memory for another process.

        Raises:
            DeviceError: it was not allocated for that.
        """
        if not isinstance(memory, DeviceMemory):
            raise DeviceError("not memory of this device")
        asked = ze.ze_external_memory_export_fd_t(_DESCRIPTOR)
        with reported("exporting memory"):
            found = ze.zeMemGetAllocProperties(self._context, memory.address, asked).pNext
        if found is None:
            raise DeviceError("not memory of this device")
        return found.fd

    def attach(self, descriptor: int, nbytes: int) -> DeviceMemory:
        """Reach exported memory, to read it.

        Raises:
            DeviceError: the descriptor is not such memory, or has fewer bytes.
        """
        desc = ze.ze_external_memory_import_fd_t(_DESCRIPTOR, descriptor)
        return self._external(nbytes, desc)

    def _external(
        self,
        nbytes: int,
        chained: ze.ze_external_memory_export_desc_t | ze.ze_external_memory_import_fd_t,
    ) -> DeviceMemory:
        flags = ze.ze_host_mem_alloc_flags_t.NONE
        if isinstance(chained, ze.ze_external_memory_import_fd_t):
            flags = ze.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
        desc = ze.ze_host_mem_alloc_desc_t(flags, chained)
        release_waiting()
        with reported(f"sharing {nbytes} bytes"):
            memory = ze.zeMemAllocHost(self._context, nbytes, host_desc=desc)
        return DeviceMemory(self._context, memory, held=True)


def _label(platform: Platform) -> str:
    """A platform's name; one of the user's own is told from what its file said before."""
    if PLATFORMS.get(platform.name) == platform:
        return platform.name
    return f"{platform.name} {hashlib.sha256(repr(platform).encode()).hexdigest()[:16]}"
