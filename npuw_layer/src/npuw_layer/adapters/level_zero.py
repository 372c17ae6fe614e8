"""The NPU behind driver_layer's Level Zero as npuw's device."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from driver_layer import ze
from driver_layer.abi.cost.dma import ddr_bytes_per_ns
from driver_layer.abi.cost.host import host_copy_ddr_bytes, host_copy_ns
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.platforms import PLATFORMS, Platform
from driver_layer.errors import DriverError
from npuw_layer.adapters.blob_constants import constant_spans
from npuw_layer.adapters.level_zero_copies import CopyQueue, RecordedCopies
from npuw_layer.adapters.level_zero_memory import (
    Contexts,
    DeviceMemory,
    free_memory,
    reported,
)
from npuw_layer.adapters.release import release_waiting, release_with
from npuw_layer.errors import DeviceError, OptionError
from npuw_layer.offload.ports import Cost, PieceCompiler, Span
from npuw_layer.ports import Array, Compiler, Memory, TensorInfo

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.pieces import CompiledPieces

_DESCRIPTOR = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF
_ELEMENT_BY_PRECISION = {element.precision: name for name, element in ELEMENT_TYPES.items()}


class LevelZeroDevice:
    """A context and a queue on one NPU; satisfies ``ports.Device``.

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
    def allocated_bytes(self) -> int:
        """Device memory in use, that of mapped files included."""
        return self._table.pfnQueryContextMemory(self._context).allocated

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a static graph to a blob; see ``ports.Compiler.compile``."""
        return self._compiler.compile(model, config)

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give graphs that stand for a stateful one; see ``ports.Compiler.foldings``."""
        return self._compiler.foldings(model)

    def constants(self, program: bytes | memoryview) -> list[tuple[int, int]]:
        """Tell where a blob has its weights; see ``ports.FindsConstants``."""
        return constant_spans(program)

    def load(self, program: bytes | memoryview) -> LoadedBlob:
        """Load a blob.

        Raises:
            DeviceError: it is no blob, or for another device, or does not fit.
        """
        desc = ze.ze_graph_desc_2_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, program)
        with reported("loading a blob"):
            graph = self._table.pfnCreate2(self._context, self._device, desc)
            self._table.pfnGraphInitialize(graph)
        return LoadedBlob(self._table, self._queue, graph)

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Take memory, zeroed; it goes back when nobody holds it any more, programs included.

        Raises:
            DeviceError: there is none left.
        """
        release_waiting()
        with reported(f"allocating {nbytes} bytes"):
            memory = ze.zeMemAllocShared(self._context, nbytes, 0, self._device)
        made = DeviceMemory(self._context, memory)
        release_with(made, partial(free_memory, self._context, memory))
        return made

    def compile_pieces(self, model: Model, config: Mapping[str, str]) -> CompiledPieces:
        """Cut a graph and compile the pieces; see ``offload.ports.OffloadingDevice``.

        Raises:
            OptionError: the compiler cannot.
        """
        if not isinstance(self._compiler, PieceCompiler):
            raise OptionError("NPUW_WEIGHTS_OFFLOAD: the compiler does not cut models")
        return self._compiler.compile_pieces(model, config)

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

        Raises:
            DeviceError: the device has no addresses left.
        """
        flag = ze.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
        desc = ze.ze_host_mem_alloc_desc_t(flag, ze.ze_external_memmap_sysmem_ext_desc_t(data))
        with reported(f"mapping {data.nbytes} bytes"):
            try:
                memory = ze.zeMemAllocHost(self._context, data.nbytes, host_desc=desc)
            except ze.ZeError as error:
                if "UNSUPPORTED_ALIGNMENT" in error.code.name:
                    return None
                raise
        return DeviceMemory(self._context, memory)

    def allocate_shared(self, nbytes: int) -> DeviceMemory:
        """Take memory that can be exported; see ``ports.SharingDevice``.

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
        with reported(f"sharing {nbytes} bytes"):
            memory = ze.zeMemAllocHost(self._context, nbytes, host_desc=desc)
        return DeviceMemory(self._context, memory)


def _label(platform: Platform) -> str:
    """A platform's name; one of the user's own is told from what its file said before."""
    if PLATFORMS.get(platform.name) == platform:
        return platform.name
    return f"{platform.name} {hashlib.sha256(repr(platform).encode()).hexdigest()[:16]}"


class LoadedBlob:
    """A graph of the driver; satisfies ``ports.LoadedModel``."""

    def __init__(
        self,
        table: ze.ze_graph_dditable_ext_t,
        queue: ze.ze_command_queue_handle_t,
        graph: ze.ze_graph_handle_t,
    ) -> None:
        self.table = table
        self.queue = queue
        self.graph = graph
        self.recording = threading.Lock()
        """Arguments belong to the graph: who records sets them all and records at once."""
        count = table.pfnGetProperties2(graph).numGraphArgs
        sides: dict[ze.ze_graph_argument_type_t, list[TensorInfo]] = {
            side: [] for side in ze.ze_graph_argument_type_t
        }
        for index in range(count):
            properties = table.pfnGetArgumentProperties3(graph, index)
            shape = table.pfnGraphGetArgumentMetadata(graph, index).shape
            element = _ELEMENT_BY_PRECISION[properties.devicePrecision]
            sides[properties.type].append(TensorInfo(properties.name, element, shape))
        self._inputs = sides[ze.ze_graph_argument_type_t.ZE_GRAPH_ARGUMENT_TYPE_INPUT]
        self._outputs = sides[ze.ze_graph_argument_type_t.ZE_GRAPH_ARGUMENT_TYPE_OUTPUT]

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The inputs, in the blob's order."""
        return self._inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The outputs, in the blob's order."""
        return self._outputs

    def create_program(self) -> RecordedProgram:
        """Make something to run."""
        return RecordedProgram(self)


class RecordedProgram:
    """A command list that executes a graph on bound memory; satisfies ``ports.Program``."""

    def __init__(self, loaded: LoadedBlob) -> None:
        self._loaded = loaded
        tensors = (*loaded.inputs, *loaded.outputs)
        # An output may have an input's name, as OpenVINO allows: then both are bound.
        self._indices: dict[str, list[int]] = {}
        for index, tensor in enumerate(tensors):
            self._indices.setdefault(tensor.name, []).append(index)
        self._pointers: dict[int, int] = {}
        self._memory: dict[int, DeviceMemory] = {}
        """What the pointers point into: it stays while the program may run."""
        self._moved: set[int] = set()
        """Arguments that lie elsewhere than when the list was closed."""
        self._commands: ze.ze_command_list_handle_t | None = None
        self._command = 0
        self._done = ze.zeFenceCreate(loaded.queue)

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or output lie in memory of the same device.

        Raises:
            DeviceError: there is no such tensor, or it is not this device's memory.
        """
        if name not in self._indices:
            raise DeviceError(f"no input or output {name!r}")
        if not isinstance(memory, DeviceMemory):
            raise DeviceError(f"{name!r}: not memory of this device")
        for index in self._indices[name]:
            self._pointers[index] = memory.address + offset
            self._memory[index] = memory
            self._moved.add(index)

    def prepare(self) -> None:
        """Record, or tell the recording what was bound anew.

        Raises:
            DeviceError: a tensor is not bound or its memory too small.
        """
        with reported("recording a blob"):
            if self._commands is None:
                self._commands = self._record()
            elif self._moved:
                self._mutate(self._commands)
            self._moved.clear()

    def run(self) -> None:
        """Execute and wait.

        Raises:
            DeviceError: a tensor is not bound or its memory too small; or the device failed.
        """
        self.prepare()
        assert self._commands is not None  # prepare() sets it or raises
        with reported("running a blob"):
            # A fence, not the queue: others may have submitted work of their own.
            ze.zeCommandQueueExecuteCommandLists(self._loaded.queue, [self._commands], self._done)
            try:
                ze.zeFenceHostSynchronize(self._done)
            finally:
                ze.zeFenceReset(self._done)

    def _record(self) -> ze.ze_command_list_handle_t:
        loaded = self._loaded
        context = loaded.graph.context
        mutable = ze.ze_mutable_command_list_exp_desc_t()
        desc = ze.ze_command_list_desc_t(pNext=mutable)
        commands = ze.zeCommandListCreate(context, context.device, desc)
        arguments = ze.ze_mutable_command_id_exp_desc_t()
        self._command = ze.zeCommandListGetNextCommandIdExp(commands, arguments)
        with loaded.recording:
            loaded.graph.arguments.clear()
            for index, pointer in self._pointers.items():
                loaded.table.pfnSetArgumentValue(loaded.graph, index, pointer)
            loaded.table.pfnAppendGraphExecute(commands, loaded.graph)
        ze.zeCommandListClose(commands)
        # The inference goes back to the graph when nobody holds the program any more.
        weakref.finalize(self, ze.zeCommandListDestroy, commands)
        return commands

    def _mutate(self, commands: ze.ze_command_list_handle_t) -> None:
        """Replace arguments of the recording; closing it applies the blob's relocations anew."""
        changes: ze.ze_mutable_graph_argument_exp_desc_t | None = None
        for index in self._moved:
            pointer = self._pointers[index]
            changes = ze.ze_mutable_graph_argument_exp_desc_t(
                self._command, index, pointer, changes
            )
        chain = ze.ze_mutable_commands_exp_desc_t(changes)
        ze.zeCommandListUpdateMutableCommandsExp(commands, chain)
        ze.zeCommandListClose(commands)
