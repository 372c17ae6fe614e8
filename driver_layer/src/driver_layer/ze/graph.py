"""Graphs: blobs that the driver has accepted, with their arguments.

Source: docs/reference/elf.md#loading (one inference per recording) and
docs/reference/level_zero.md#graph-extension, docs/reference/level_zero.md#arguments.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from weakref import ref

from driver_layer.errors import BlobError, CompatibilityError, DriverFault, OutOfMemory, ZeError
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.loader.metadata import NodeInfo
from driver_layer.loader.ops import op_of
from driver_layer.loader.read import read_blob
from driver_layer.loader.strides import Strides
from driver_layer.ze import errors
from driver_layer.ze import graph_types as t
from driver_layer.ze.calls import Handle
from driver_layer.ze.context import Pointer, ze_context_handle_t
from driver_layer.ze.graph_strides import checked_strides
from driver_layer.ze.profiling_data import GraphProfile, has_layer_map
from driver_layer.ze.result import ze_result_t

_READING_CODES: errors.Codes = {
    CompatibilityError: ze_result_t.ZE_RESULT_ERROR_INVALID_NATIVE_BINARY,
    BlobError: ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT,
}
_LOADING_CODES: errors.Codes = {
    OutOfMemory: ze_result_t.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
    BlobError: ze_result_t.ZE_RESULT_ERROR_UNKNOWN,
}


class ze_graph_handle_t(Handle):
    """A graph.

    Args:
        context: context whose memory the graph uses.
        binary: the blob, which the graph uses in place.
        origin: the graph's flags, except for those that the blob determines.

    Raises:
        ZeError: INVALID_NATIVE_BINARY: the blob is for another platform or version;
            INVALID_ARGUMENT: the blob is malformed, ``__cause__`` has the details.
    """

    def __init__(
        self,
        context: ze_context_handle_t,
        binary: bytes | memoryview,
        origin: t.ze_graph_properties_flag_t,
    ) -> None:
        super().__init__()
        self.context = context
        self.binary = memoryview(binary)
        self.arguments: dict[int, Pointer] = {}
        self.strides: dict[int, Strides] = {}
        """Strides of the arguments that are not dense."""
        with errors.failing_as(_READING_CODES):
            self.blob = read_blob(self.binary)
            self._original = HostParsedInference(self.blob, context.device.platform)
        self.metadata = self._original.metadata
        self.tensors = (*self.metadata.inputs, *self.metadata.outputs)
        """Arguments: inputs, then outputs."""
        profiled = t.ze_graph_properties_flag_t.ZE_GRAPH_PROPERTIES_FLAG_PROFILING_ENABLED
        self.flags = origin | profiled if has_layer_map(self.blob) else origin
        self._lock = threading.RLock()
        """Held while the blob is loaded and an inference is chosen: several threads record."""
        self._holders: dict[HostParsedInference, ref[GraphExecution] | None]
        self._holders = {self._original: None}
        """All inferences with their recordings. An inference is idle if it has no recording or a
        dead one, as after a signal handler raised before the recording was returned."""

    @cached_property
    def profile(self) -> GraphProfile:
        """Profile of the graph: the times of its tasks, equal for all inferences.

        Raises:
            ZeError: as ``GraphProfile``.
        """
        return GraphProfile(self.blob, self.context.device.platform)

    def is_input(self, index: int) -> bool:
        """Return whether an argument is an input."""
        return index < len(self.metadata.inputs)

    def node(self, index: int) -> NodeInfo | None:
        """Return the parameter or result of an argument; None for that of a state or a weight.

        A node's input name is that of its argument. In blobs without input names the order pairs
        them, as in linux-npu-driver: arguments of states come last there.
        """
        first = 0 if self.is_input(index) else len(self.metadata.inputs)
        nodes = self.metadata.parameters if self.is_input(index) else self.metadata.results
        if any(node.input_name for node in nodes):
            name = self.tensors[index].name
            return next((node for node in nodes if node.input_name == name), None)
        return nodes[index - first] if index - first < len(nodes) else None

    def initialize(self) -> None:
        """Load the blob; a second call does nothing.

        Raises:
            ZeError: OUT_OF_DEVICE_MEMORY, or UNKNOWN if the blob's content is malformed.
        """
        with self._lock, errors.failing_as(_LOADING_CODES):
            if not self._original.loaded:
                self._original.load(self.context.space)

    def record(self, holder: GraphExecution) -> HostParsedInference:
        """Return an inference bound to the current arguments, for one recording.

        Args:
            holder: the recording.

        Raises:
            ZeError: UNINITIALIZED: an argument is missing; INVALID_ARGUMENT: it is too small, or
                not memory of the graph's context; UNKNOWN: a relocation of the blob cannot be
                applied; else as ``initialize``.
        """
        pointers = [self._argument(index) for index in range(len(self.tensors))]
        with self._lock, errors.failing_as(_LOADING_CODES):
            self.initialize()
            idle = (one for one, by in self._holders.items() if by is None or by() is None)
            inference = next(idle, None) or self._original.clone()
            self._holders[inference] = ref(holder)
        try:
            self.relocate(inference, pointers, self.strides)
        except ZeError:
            self.release(inference)
            raise
        return inference

    def relocate(
        self,
        inference: HostParsedInference,
        pointers: Sequence[Pointer],
        strides: Mapping[int, Strides],
    ) -> None:
        """Bind a recorded inference to other arguments.

        Raises:
            ZeError: as ``record``.
        """
        addresses = [
            self.address(index, pointer, strides.get(index, ()))
            for index, pointer in enumerate(pointers)
        ]
        count = len(self.metadata.inputs)
        with errors.failing_as(_LOADING_CODES):
            inference.apply_input_output(addresses[:count], addresses[count:], strides)

    def release(self, inference: HostParsedInference) -> None:
        """Mark an inference as idle, after its recording was discarded."""
        if inference in self._holders:
            self._holders[inference] = None

    def destroy(self) -> None:
        """Unload the graph, which must not be executing; an interrupted call may be repeated."""
        for inference in self._holders:
            if inference.loaded:
                self.context.device.npu.forget(self.context.space, inference.address)
                inference.free()
        self._holders.clear()
        self.alive = False

    def check_index(self, index: int) -> None:
        """Raise ZeError INVALID_ARGUMENT if an argument does not exist."""
        if not 0 <= index < len(self.tensors):
            raise errors.invalid_argument(f"no argument {index}; the graph has {len(self.tensors)}")

    def set_argument(self, index: int, pointer: Pointer | None, strides: Strides) -> None:
        """Set an argument for later recordings; without a pointer, its location stays."""
        if pointer is not None:
            self.arguments[index] = pointer
        self.strides[index] = strides

    def checked_strides(self, index: int, strides: Sequence[int]) -> Strides:
        """Check strides of an argument; raises ZeError as ``graph_strides.checked_strides``."""
        self.check_index(index)
        return checked_strides(self.tensors[index], strides)

    def address(self, index: int, pointer: Pointer, strides: Strides = ()) -> int:
        """Return the device address of an argument at a pointer, of a tensor with strides.

        Raises:
            ZeError: INVALID_ARGUMENT: the argument does not exist, or the memory is too small or
                not of the graph's context.
        """
        self.check_index(index)
        return self.context.address_of(pointer, self.tensors[index].extent(strides))

    def _argument(self, index: int) -> Pointer:
        pointer = self.arguments.get(index)
        if pointer is None:
            message = f"argument {index}, {self.tensors[index].name!r}, is not set"
            raise errors.uninitialized(message)
        self.address(index, pointer, self.strides.get(index, ()))
        return pointer


class GraphExecution:
    """One recorded inference, whose arguments a mutable list can change.

    Args:
        graph: the graph, whose current arguments become the recording's.

    Raises:
        ZeError: as ``ze_graph_handle_t.record``.
    """

    def __init__(self, graph: ze_graph_handle_t) -> None:
        self._graph = graph
        self._inference = graph.record(self)
        self._pointers = [graph.arguments[index] for index in range(len(graph.tensors))]
        self._strides = dict(graph.strides)
        self._changed = False
        """True if an argument may have changed since relocations were applied."""
        self._prepare()

    def run(self) -> None:
        """Execute the inference on the calling thread.

        Raises:
            DeviceFault, OutOfMemory: a task failed; the error names the task and its operation.
        """
        try:
            self._run()
        except DriverFault as fault:
            raise fault.of(op_of(self._graph.blob, fault.engine, fault.task)) from fault

    def release(self) -> None:
        """Return the inference to the graph."""
        self._graph.release(self._inference)

    def change(
        self, index: int, pointer: Pointer | None, strides: Sequence[int] | None
    ) -> Callable[[], None]:
        """Check a change of an argument; return the function that makes it.

        Args:
            index: number of the argument.
            pointer: its new location; None to keep the current one.
            strides: its new strides; None for the dense ones.

        Raises:
            ZeError: as the graph's ``checked_strides`` and ``address``.
        """
        self._graph.check_index(index)
        wanted = () if strides is None else self._graph.checked_strides(index, strides)
        place = self._pointers[index] if pointer is None else pointer
        self._graph.address(index, place, wanted)

        def make() -> None:
            self._changed = True
            self._pointers[index] = place
            self._strides[index] = wanted

        return make

    def apply(self) -> None:
        """Apply the blob's user relocations again if an argument was changed.

        Raises:
            ZeError: INVALID_ARGUMENT: memory was freed; UNKNOWN: a relocation fails.
        """
        if self._changed:
            self._graph.relocate(self._inference, self._pointers, self._strides)
            self._prepare()
            self._changed = False

    def _prepare(self) -> None:
        context = self._graph.context
        inference = self._inference
        npu = context.device.npu
        npu.prepare(context.space, inference.address, inference.footprint())

        def infer() -> None:  # without a reference to this object, which its list alone keeps
            npu.run_inference(context.space, inference.address)

        self._run = context.bounced(infer, *self._pointers)
