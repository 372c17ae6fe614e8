"""Initialisation of graphs, and the recording of inferences in command lists.

Source: docs/reference/level_zero.md#graph-extension, docs/reference/level_zero.md#arguments.
"""

from __future__ import annotations

from functools import partial

from driver_layer.errors import ZeError
from driver_layer.ze import errors
from driver_layer.ze.calls import checked
from driver_layer.ze.command_list import Events, nothing, ze_command_list_handle_t
from driver_layer.ze.event import ze_event_handle_t
from driver_layer.ze.graph import GraphExecution, ze_graph_handle_t
from driver_layer.ze.profiling_extension import ze_graph_profiling_query_handle_t


class GraphRecording:
    """Functions that prepare and record inferences."""

    @checked
    def pfnGraphInitialize(self, hGraph: ze_graph_handle_t) -> None:
        """Load a graph now instead of at its first recording.

        Raises:
            ZeError: OUT_OF_DEVICE_MEMORY, or UNKNOWN if the blob's content is malformed.
        """
        hGraph.initialize()

    @checked
    def pfnAppendGraphInitialize(
        self,
        hCommandList: ze_command_list_handle_t,
        hGraph: ze_graph_handle_t | None,
        hSignalEvent: ze_event_handle_t | None = None,
        phWaitEvents: Events = (),
    ) -> None:
        """Load a graph immediately; the recorded command only waits and signals.

        Raises:
            ZeError: as pfnGraphInitialize; UNINITIALIZED: hGraph is None
                (docs/reference/level_zero.md#nulls-of-graph-commands); INVALID_ARGUMENT: the list
                is closed; INVALID_SYNCHRONIZATION_OBJECT: an event is of another context.
        """
        hCommandList.check_open()
        if hGraph is None:
            raise errors.uninitialized("hGraph is None; a graph is required")
        hGraph.initialize()
        if hSignalEvent is not None or phWaitEvents:
            hCommandList.append(nothing, hSignalEvent, phWaitEvents)

    @checked
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
        if hCommandList.context is not hGraph.context:
            raise errors.invalid_argument("graph and command list belong to different contexts")
        if not hCommandList.computes:
            raise errors.invalid_command_list_type("the command list is for queues that only copy")
        if hProfilingQuery is not None and hProfilingQuery.pool.graph is not hGraph:
            raise errors.invalid_argument("the profiling query belongs to another graph")
        execution = GraphExecution(hGraph)
        run = execution.run
        if hProfilingQuery is not None:
            run = partial(hProfilingQuery.profile, run)
        try:
            hCommandList.append(run, hSignalEvent, phWaitEvents, execution)
        except ZeError:
            execution.release()
            raise

    @checked
    def pfnEvict(self, hGraph: ze_graph_handle_t) -> None:
        """Release memory of recorded inferences that do not run; nothing, as in the Linux driver.

        Here a recording owns no memory apart from its inference, which it needs to run again.
        """
