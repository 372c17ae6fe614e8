"""The graph extension's function table, 1.18.

Only native graphs are supported: the layers above compile. Functions that a newer one replaces
(such as pfnGetArgumentProperties2) are not offered.

Source: docs/reference/level_zero.md#graph-extension.
"""

from __future__ import annotations

from functools import partial

from driver_layer.errors import ZeError
from driver_layer.npu.memory import MemoryKind
from driver_layer.ze import types as t
from driver_layer.ze.command_list import Command, Events, ze_command_list_handle_t
from driver_layer.ze.context import Pointer, ze_context_handle_t
from driver_layer.ze.driver import (
    GRAPH_EXTENSION,
    GRAPH_EXTENSION_VERSION,
    extension_tables,
    ze_device_handle_t,
)
from driver_layer.ze.event import ze_event_handle_t
from driver_layer.ze.graph import GraphExecution, ze_graph_handle_t
from driver_layer.ze.handles import check, given
from driver_layer.ze.profiling import ze_graph_profiling_query_handle_t
from driver_layer.ze.result import failed, last_error, ze_result_t

_MAX_DIMS = 5
_IN = t.ze_graph_argument_type_t.ZE_GRAPH_ARGUMENT_TYPE_INPUT
_OUT = t.ze_graph_argument_type_t.ZE_GRAPH_ARGUMENT_TYPE_OUTPUT


class ze_graph_dditable_ext_t:
    """The function table; functions check their handles, and raise ZeError for C's result codes."""

    def pfnCreate2(
        self,
        hContext: ze_context_handle_t,
        hDevice: ze_device_handle_t,
        desc: t.ze_graph_desc_2_t,
    ) -> ze_graph_handle_t:
        """Create a graph from a blob.

        Raises:
            ZeError: UNSUPPORTED_FEATURE: not a native graph; INVALID_NATIVE_BINARY: for another
                platform or version; INVALID_ARGUMENT: malformed.
        """
        context = check(hContext, ze_context_handle_t)
        check(hDevice, ze_device_handle_t)
        if given(desc, "desc").format != t.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE:
            message = "this driver has no compiler; compile the model and pass its blob"
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, message)
        return ze_graph_handle_t(context, desc)

    def pfnDestroy(self, hGraph: ze_graph_handle_t) -> None:
        """Unload a graph."""
        check(hGraph, ze_graph_handle_t).destroy()

    def pfnGetProperties2(self, hGraph: ze_graph_handle_t) -> t.ze_graph_properties_2_t:
        """Describe a graph."""
        graph = check(hGraph, ze_graph_handle_t)
        stage = t.ze_graph_init_stage_t.ZE_GRAPH_STAGE_INITIALIZE
        return t.ze_graph_properties_2_t(len(graph.tensors), stage)

    def pfnGetArgumentProperties3(
        self, hGraph: ze_graph_handle_t, argIndex: int
    ) -> t.ze_graph_argument_properties_3_t:
        """Describe an argument; inputs come first.

        Raises:
            ZeError: INVALID_ARGUMENT: the argument does not exist.
        """
        graph = check(hGraph, ze_graph_handle_t)
        _check_index(graph, argIndex)
        tensor = graph.tensors[argIndex]
        return t.ze_graph_argument_properties_3_t(
            name=tensor.name,
            type=_side(graph, argIndex),
            dims=(*tensor.shape, *[1] * _MAX_DIMS)[:_MAX_DIMS],
            networkPrecision=tensor.element.precision,
            devicePrecision=tensor.element.precision,
            dims_count=len(tensor.shape),
            debug_friendly_name=tensor.name,
            associated_tensor_names=(tensor.name,),
        )

    def pfnGraphGetArgumentMetadata(
        self, hGraph: ze_graph_handle_t, argIndex: int
    ) -> t.ze_graph_argument_metadata_t:
        """Return OpenVINO's metadata of an argument; raises as pfnGetArgumentProperties3."""
        graph = check(hGraph, ze_graph_handle_t)
        _check_index(graph, argIndex)
        tensor = graph.tensors[argIndex]
        side = _side(graph, argIndex)
        known = graph.parameter_names if side is _IN else graph.result_names
        return t.ze_graph_argument_metadata_t(
            type=side,
            friendly_name=tensor.name,
            data_type=tensor.element.node_type,
            shape=tensor.shape,
            tensor_names=known.get(tensor.name, ()),
        )

    def pfnSetArgumentValue(
        self, hGraph: ze_graph_handle_t, argIndex: int, pArgValue: Pointer | None
    ) -> None:
        """Set the location of an argument for later recordings.

        Raises:
            ZeError: INVALID_ARGUMENT: the argument does not exist; INVALID_NULL_POINTER.
        """
        graph = check(hGraph, ze_graph_handle_t)
        _check_index(graph, argIndex)
        graph.arguments[argIndex] = given(pArgValue or None, "pArgValue")

    def pfnGraphInitialize(self, hGraph: ze_graph_handle_t) -> None:
        """Load a graph now instead of at its first recording."""
        check(hGraph, ze_graph_handle_t).initialize()

    def pfnAppendGraphInitialize(
        self, hCommandList: ze_command_list_handle_t, hGraph: ze_graph_handle_t | None
    ) -> None:
        """Load a graph immediately; no command is recorded.

        Raises:
            ZeError: UNINITIALIZED: hGraph is None, as in the public driver; else as
                pfnGraphInitialize. Source: linux-npu-driver, CommandList::appendGraphInitialize.
        """
        check(hCommandList, ze_command_list_handle_t)
        if hGraph is None:
            raise failed(
                ze_result_t.ZE_RESULT_ERROR_UNINITIALIZED, "hGraph is None; a graph is required"
            )
        check(hGraph, ze_graph_handle_t).initialize()

    def pfnAppendGraphExecute(
        self,
        hCommandList: ze_command_list_handle_t,
        hGraph: ze_graph_handle_t,
        hProfilingQuery: ze_graph_profiling_query_handle_t | None = None,
        hSignalEvent: ze_event_handle_t | None = None,
        phWaitEvents: Events = (),
    ) -> None:
        """Record one inference with the current arguments.

        Raises:
            ZeError: UNINITIALIZED: an argument is missing; INVALID_ARGUMENT: an argument is too
                small or not memory of the context, the list is closed or of another context, or
                the query is of another graph; INVALID_COMMAND_LIST_TYPE: the list is for queues
                that only copy; INVALID_SYNCHRONIZATION_OBJECT: an event is of another context.
        """
        command_list = check(hCommandList, ze_command_list_handle_t)
        graph = check(hGraph, ze_graph_handle_t)
        if command_list.context is not graph.context:
            message = "graph and command list belong to different contexts"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
        if not command_list.computes:
            code = ze_result_t.ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE
            raise failed(code, "the command list is for queues that only copy")
        if hProfilingQuery is not None:
            _check_query(hProfilingQuery, graph)
        execution = GraphExecution(graph)
        run = execution.run
        if hProfilingQuery is not None:
            run = partial(hProfilingQuery.profile, run)
        release = execution.release
        command = Command(run, hSignalEvent, tuple(phWaitEvents), execution, release)
        try:
            command_list.append(command)
        except ZeError:
            release()
            raise

    def pfnGetNativeBinary(self, hGraph: ze_graph_handle_t) -> bytes:
        """Return a copy of the blob."""
        return bytes(check(hGraph, ze_graph_handle_t).binary)

    def pfnGetNativeBinary2(self, hGraph: ze_graph_handle_t) -> memoryview:
        """Return a read-only view of the blob, valid until the graph is destroyed."""
        return check(hGraph, ze_graph_handle_t).binary.toreadonly()

    def pfnDeviceGetGraphProperties2(
        self, hDevice: ze_device_handle_t
    ) -> t.ze_device_graph_properties_2_t:
        """Describe the graphs that a device supports."""
        platform = check(hDevice, ze_device_handle_t).platform
        elf, runtime = platform.loader_abi, platform.firmware_inference
        return t.ze_device_graph_properties_2_t(
            graphExtensionVersion=GRAPH_EXTENSION_VERSION,
            graphFormatsSupported=t.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE,
            maxOVOpsetVersionSupported=0,
            elfVersion=t.ze_version_t(elf.major, elf.minor),
            runtimeVersion=t.ze_version_t(runtime.major, runtime.minor),
        )

    def pfnQueryContextMemory(self, hContext: ze_context_handle_t) -> t.ze_graph_memory_query_t:
        """Return a context's total and allocated DDR, in bytes."""
        context = check(hContext, ze_context_handle_t)
        total = sum(kind.value.end - kind.value.begin for kind in MemoryKind)
        return t.ze_graph_memory_query_t(total, context.space.allocated_bytes)

    def pfnBuildLogGetString(self, hGraph: ze_graph_handle_t | None = None) -> str:
        """Return the text of this thread's last error."""
        del hGraph
        return last_error()


def _check_index(graph: ze_graph_handle_t, index: int) -> None:
    if not 0 <= index < len(graph.tensors):
        message = f"no argument {index}; the graph has {len(graph.tensors)}"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)


def _check_query(query: ze_graph_profiling_query_handle_t, graph: ze_graph_handle_t) -> None:
    if check(query, ze_graph_profiling_query_handle_t).pool.graph is not graph:
        message = "the profiling query belongs to another graph"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)


def _side(graph: ze_graph_handle_t, index: int) -> t.ze_graph_argument_type_t:
    return _IN if index < len(graph.metadata.inputs) else _OUT


_TABLE = ze_graph_dditable_ext_t()
extension_tables[GRAPH_EXTENSION] = lambda: _TABLE
