"""The NPU as npuw's device, through driver_layer's Level Zero."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from driver_layer import ze
from driver_layer.abi.cost.dma import ddr_bytes_per_ns, host_copy_ddr_bytes, host_copy_ns
from driver_layer.abi.platforms import PLATFORMS, Platform
from driver_layer.errors import DriverError
from driver_layer.support.mapped_file import mapped_file_of
from npuw_layer.backends.blob_constants import constant_spans
from npuw_layer.backends.level_zero_context import LevelZeroContext
from npuw_layer.backends.level_zero_copies import CopyQueue, RecordedCopies
from npuw_layer.backends.level_zero_facts import FACTS
from npuw_layer.backends.level_zero_memory import reported
from npuw_layer.backends.level_zero_programs import LoadedBlob
from npuw_layer.backends.protocols import (
    Compiler,
    CompilesFunctions,
    CompilesParts,
    Contexts,
    Cost,
    Urgency,
    WeightCopy,
)
from npuw_layer.backends.release import release_waiting
from npuw_layer.errors import DeviceError, OptionError

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.compiled import CompiledFunction, CompiledParts

_PRIORITIES = {
    "LOW": ze.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW,
    "MEDIUM": ze.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_NORMAL,
    "HIGH": ze.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH,
}
_WORKLOADS = {
    "DEFAULT": ze.ze_command_queue_workload_type_t.ZE_WORKLOAD_TYPE_DEFAULT,
    "EFFICIENT": ze.ze_command_queue_workload_type_t.ZE_WORKLOAD_TYPE_BACKGROUND,
}


class LevelZeroDevice(LevelZeroContext):
    """A queue on one NPU, and its memory; satisfies ``protocols.Device`` and most abilities.

    Args:
        compiler: compiles graphs to blobs.
        platform: the simulated NPU, e.g. "4000".
        contexts: holder of the Level Zero context; by default, a new one.

    Raises:
        DeviceError: no such platform exists.
    """

    def __init__(self, compiler: Compiler, platform: str, contexts: Contexts | None = None) -> None:
        super().__init__(platform, contexts or Contexts())
        self._compiler = compiler
        with reported(f"NPU {platform}"):
            self._queue = ze.zeCommandQueueCreate(self._context, self._device)
            self._copies = CopyQueue(self._context, self._device)
            self._urgency: Urgency = Urgency()
            self._profiling: ze.ze_graph_profiling_dditable_ext_t | None = None
            self._table: ze.ze_graph_dditable_ext_t = ze.zeDriverGetExtensionFunctionAddress(
                self._device.driver, ze.GRAPH_EXTENSION
            )

    @property
    def version(self) -> str:
        """Versions of compiler, loader and firmware, and the platform."""
        # Not from the graph properties: they also describe the driver's compiler, which this device
        # does not use, and would load it.
        platform = self._device.platform
        elf, runtime = platform.loader_abi, platform.firmware_inference
        return (
            f"{self._compiler.version} NPU {_label(platform)} "
            f"ELF {elf.major}.{elf.minor} MI {runtime.major}.{runtime.minor}"
        )

    @property
    def allocated_bytes(self) -> int:
        """Device memory in use, including mapped files."""
        return self._table.pfnQueryContextMemory(self._context).allocated

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a static graph to a blob; see ``protocols.Compiler.compile``."""
        return self._compiler.compile(model, config)

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield graphs that stand for a stateful one; see ``protocols.Compiler.foldings``."""
        return self._compiler.foldings(model)

    def constants(self, program: bytes | memoryview) -> list[tuple[int, int]]:
        """Return the location of a blob's weights; see ``protocols.FindsConstants``."""
        return constant_spans(program)

    def load(self, program: bytes | memoryview) -> LoadedBlob:
        """Load a blob; the last reference, including programs, unloads it.

        Raises:
            DeviceError: the bytes are not a blob, or a blob for another device, or do not fit.
        """
        release_waiting()
        desc = ze.ze_graph_desc_2_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, program)
        with reported("loading a blob"):
            graph = self._table.pfnCreate2(self._context, self._device, desc)
            self._table.pfnGraphInitialize(graph)
        return LoadedBlob(self._table, self._queue, graph, self._profiling, mapped_file_of(program))

    def set_urgency(self, urgency: Urgency) -> bool:
        """Set the urgency of programs that are loaded later; see ``protocols.TakesTurns``."""
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

    def fact(self, name: str) -> Any:
        """Return a property of the NPU; see ``protocols.ReportsFacts``."""
        return FACTS[name](self)

    def profile_programs(self) -> None:
        """Enable reports of layer times by programs; see ``protocols.ProfilesPrograms``."""
        driver = self._device.driver
        self._profiling = ze.zeDriverGetExtensionFunctionAddress(driver, ze.PROFILING_EXTENSION)

    def compile_parts(self, model: Model, config: Mapping[str, str]) -> CompiledParts:
        """Cut a graph and compile the parts; see ``protocols.OffloadingDevice``.

        Raises:
            OptionError: the compiler does not support this.
        """
        if not isinstance(self._compiler, CompilesParts):
            raise OptionError("NPUW_WEIGHTS_OFFLOAD: the compiler cannot cut models; set it to NO")
        return self._compiler.compile_parts(model, config)

    def compile_function(self, model: Model, config: Mapping[str, str]) -> CompiledFunction:
        """Compile a part that is called several times; see ``protocols.CompilesFunctions``.

        Raises:
            OptionError: the compiler does not support this.
        """
        if not isinstance(self._compiler, CompilesFunctions):
            raise OptionError("NPUW_FOLD: the compiler cannot compile functions; set it to NO")
        return self._compiler.compile_function(model, config)

    def record_copies(self, spans: Sequence[WeightCopy]) -> RecordedCopies:
        """Record copies for a queue that runs in parallel to that of programs.

        Raises:
            DeviceError: a span is not in memory of this device.
        """
        return RecordedCopies(self._copies, spans)

    def predict(self, program: bytes | memoryview) -> Cost:
        """Return the cost of a blob, from its predicted timeline.

        Raises:
            DeviceError: the bytes are not a blob, or a blob for another device.
        """
        from driver_layer.npu.timeline import predict

        try:
            tasks = predict(program, self._device.platform)
        except DriverError as error:
            raise DeviceError(f"predicting a blob: {error}") from error
        return Cost(max(task.end_ns for task in tasks), sum(task.ddr_bytes for task in tasks))

    def predict_copy(self, nbytes: int) -> Cost:
        """Return the cost of a copy from the host's memory."""
        platform = self._device.platform
        return Cost(host_copy_ns(platform, nbytes), host_copy_ddr_bytes(platform, nbytes))

    @property
    def ddr_bytes_per_ns(self) -> float:
        """Bandwidth of the device's memory."""
        return ddr_bytes_per_ns(self._device.platform)


def _label(platform: Platform) -> str:
    """Return a platform's name; with a digest of the values for a user-defined platform."""
    if PLATFORMS.get(platform.name) == platform:
        return platform.name
    return f"{platform.name} {hashlib.sha256(repr(platform).encode()).hexdigest()[:16]}"
