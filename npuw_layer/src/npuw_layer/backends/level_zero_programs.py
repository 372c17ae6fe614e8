"""Blobs on the NPU, and the programs that run them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from driver_layer import ze
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.support.mapped_file import MappedFile
from npuw_layer.backends.level_zero_memory import (
    DeviceMemory,
    check_file,
    reported,
)
from npuw_layer.backends.level_zero_profiling import RunTimes, task_spans
from npuw_layer.backends.protocols import Memory, Program, TaskSpan, TensorInfo
from npuw_layer.backends.release import release_with
from npuw_layer.errors import DeviceError

_ELEMENT_BY_PRECISION = {element.precision: name for name, element in ELEMENT_TYPES.items()}


class LoadedBlob:
    """A graph of the driver; satisfies ``protocols.LoadedModel`` and ``ShowsTimeline``.

    Args:
        table: functions of the graph extension.
        queue: the queue of its runs.
        graph: unloaded with this object.
        profiling: functions of the profiling extension, if programs should report their times.
        file: the file that the blob is mapped from, if any.
    """

    def __init__(
        self,
        table: ze.ze_graph_dditable_ext_t,
        queue: ze.ze_command_queue_handle_t,
        graph: ze.ze_graph_handle_t,
        profiling: ze.ze_graph_profiling_dditable_ext_t | None = None,
        file: MappedFile | None = None,
    ) -> None:
        self.table = table
        self.queue = queue
        self.graph = graph
        self.profiling = profiling
        self.file = file
        self.recording = threading.Lock()
        """Lock of the graph's arguments: each recording first sets all of them."""
        release_with(self, partial(table.pfnDestroy, graph))
        count = table.pfnGetProperties2(graph).numGraphArgs
        sides: dict[ze.ze_graph_argument_type_t, list[TensorInfo]] = {
            side: [] for side in ze.ze_graph_argument_type_t
        }
        for index in range(count):
            properties = table.pfnGetArgumentProperties3(graph, index)
            shape = table.pfnGraphGetArgumentMetadata(graph, index).shape
            element = _ELEMENT_BY_PRECISION[properties.devicePrecision]
            sides[properties.type].append(TensorInfo(properties.name, element, shape))
        kinds = ze.ze_graph_argument_type_t
        self.inputs: Sequence[TensorInfo] = sides[kinds.ZE_GRAPH_ARGUMENT_TYPE_INPUT]
        self.outputs: Sequence[TensorInfo] = sides[kinds.ZE_GRAPH_ARGUMENT_TYPE_OUTPUT]

    def create_program(self) -> RecordedProgram:
        """Create a program to bind and run."""
        return RecordedProgram(self)

    def timeline(self) -> Sequence[TaskSpan]:
        """Return the times of a run's tasks; see ``protocols.ShowsTimeline``."""
        return task_spans(self.graph)


class RecordedProgram:
    """A command list that executes a graph on bound memory; satisfies ``protocols.Program``."""

    def __init__(self, loaded: LoadedBlob) -> None:
        self._loaded = loaded
        tensors = (*loaded.inputs, *loaded.outputs)
        # An output may share an input's name, as OpenVINO allows: both are bound then.
        self._indices: dict[str, list[int]] = {}
        for index, tensor in enumerate(tensors):
            self._indices.setdefault(tensor.name, []).append(index)
        self._bound: dict[int, tuple[DeviceMemory, int]] = {}
        """Memory and offset of each argument; keeps the memory alive while the program may run."""
        self._in_files: list[DeviceMemory] | None = None
        """Bound memory that is mapped from files; None until computed."""
        self._moved: set[int] = set()
        """Arguments that were rebound since the list was closed."""
        self._commands: ze.ze_command_list_handle_t | None = None
        self._command = 0
        self._times: RunTimes | None = None
        self._done = ze.zeFenceCreate(loaded.queue)

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory of the same device.

        Raises:
            DeviceError: no such tensor exists, or the memory is of another device.
        """
        if name not in self._indices:
            raise DeviceError(f"the blob has no input or output {name!r}")
        if not isinstance(memory, DeviceMemory):
            raise DeviceError(f"{name!r}: the memory is of another device")
        for index in self._indices[name]:
            self._moved.add(index)
            before = self._bound.get(index)
            if before is None or before[0] is not memory:
                self._in_files = None
            self._bound[index] = memory, offset  # last: an interrupt keeps the old one

    def prepare(self) -> None:
        """Record the program, or update the recording with new bindings.

        Raises:
            DeviceError: a tensor is not bound, or its memory is too small.
            NpuwFault: a file that the program reads was truncated.
        """
        self._recorded()

    def run(self) -> None:
        """Execute and wait.

        Raises:
            DeviceError: a tensor is not bound, its memory is too small, or the device failed.
            NpuwFault: a file that the program reads was truncated.
        """
        self._execute()

    def followed_by(self, other: Program) -> Callable[[], None] | None:
        """Return a function that submits both programs together; see ``protocols.RunsTogether``."""
        if not isinstance(other, RecordedProgram) or other._loaded.queue is not self._loaded.queue:
            return None

        def both() -> None:
            self._execute(other)

        return both

    def _execute(self, *behind: RecordedProgram) -> None:
        """Execute the program, and others behind it; errors as ``run``."""
        every = (self, *behind)
        lists = [program._recorded() for program in every]
        with reported("running a blob"):
            # Wait for a fence, not for the queue: other users may have submitted work.
            try:
                ze.zeCommandQueueExecuteCommandLists(self._loaded.queue, lists, self._done)
                ze.zeFenceHostSynchronize(self._done)
            except ze.ZeError:
                raise
            except BaseException:  # from a signal's handler, e.g. of Ctrl-C
                # Bound memory must not return to the caller before the device is done. The fence
                # may not have been submitted yet: an interrupt can come anywhere.
                with suppress(ze.ZeError):
                    ze.zeCommandQueueSynchronize(self._loaded.queue)
                raise
            finally:
                ze.zeFenceReset(self._done)
        for program in every:
            if program._times is not None:
                program._times.tell()

    def _recorded(self) -> ze.ze_command_list_handle_t:
        """Return the recording with the current bindings; errors as ``prepare``."""
        self._check_files()
        if self._commands is None or self._moved:
            with reported("recording a blob"):
                if self._commands is None:
                    self._commands = self._record()
                else:
                    self._mutate(self._commands)
                self._moved.clear()
        return self._commands

    def _check_files(self) -> None:
        """Check that mapped files still have all bytes."""
        if self._in_files is None:
            memories = {id(memory): memory for memory, _ in self._bound.values()}
            self._in_files = [one for one in memories.values() if one.file is not None]
        check_file(self._loaded.file)
        for memory in self._in_files:
            check_file(memory.file)

    def _pointer(self, index: int) -> int:
        """Return the device address of an argument."""
        memory, offset = self._bound[index]
        return memory.address + offset

    def _record(self) -> ze.ze_command_list_handle_t:
        loaded = self._loaded
        context = loaded.graph.context
        mutable = ze.ze_mutable_command_list_exp_desc_t()
        desc = ze.ze_command_list_desc_t(pNext=mutable)
        commands = ze.zeCommandListCreate(context, context.device, desc)
        arguments = ze.ze_mutable_command_id_exp_desc_t()
        self._command = ze.zeCommandListGetNextCommandIdExp(commands, arguments)
        if loaded.profiling is not None:
            self._times = RunTimes(loaded.profiling, loaded.graph)
        query = None if self._times is None else self._times.query
        with loaded.recording:
            loaded.graph.arguments.clear()
            for index in self._bound:
                loaded.table.pfnSetArgumentValue(loaded.graph, index, self._pointer(index))
            loaded.table.pfnAppendGraphExecute(commands, loaded.graph, query)
        ze.zeCommandListClose(commands)
        # The finalizer is dropped with the program, and then releases the graph's inference.
        release_with(self, partial(ze.zeCommandListDestroy, commands))
        return commands

    def _mutate(self, commands: ze.ze_command_list_handle_t) -> None:
        """Replace arguments of the recording; closing it applies the blob's relocations again."""
        changes: ze.ze_mutable_graph_argument_exp_desc_t | None = None
        for index in self._moved:
            changes = ze.ze_mutable_graph_argument_exp_desc_t(
                self._command, index, self._pointer(index), changes
            )
        chain = ze.ze_mutable_commands_exp_desc_t(changes)
        ze.zeCommandListUpdateMutableCommandsExp(commands, chain)
        ze.zeCommandListClose(commands)
