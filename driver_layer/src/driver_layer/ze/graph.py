"""Graphs: blobs that the driver has adopted, with the arguments they are to be run on.

Source: fact sheet elf_driver §2.5 (one inference per recording), §5.2, §5.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from driver_layer.errors import BlobError, CompatibilityError, OutOfMemory
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.loader.metadata import NodeInfo
from driver_layer.ze import types as t
from driver_layer.ze.context import Pointer, ze_context_handle_t
from driver_layer.ze.handles import Handle
from driver_layer.ze.result import failed, ze_result_t


def _tensor_names(nodes: Sequence[NodeInfo]) -> dict[str, tuple[str, ...]]:
    return {node.friendly_name: node.tensor_names for node in nodes}


class ze_graph_handle_t(Handle):
    """A graph.

    Args:
        context: whose memory it uses.
        desc: a native blob.

    Raises:
        ZeError: INVALID_NATIVE_BINARY: for another platform or version; INVALID_ARGUMENT: it is
            malformed, ``__cause__`` says how.
    """

    def __init__(self, context: ze_context_handle_t, desc: t.ze_graph_desc_2_t) -> None:
        super().__init__()
        self.context = context
        self.binary = memoryview(desc.pInput)
        self.arguments: dict[int, Pointer] = {}
        try:
            self._original = HostParsedInference(self.binary, context.device.platform)
        except CompatibilityError as error:
            code = ze_result_t.ZE_RESULT_ERROR_INVALID_NATIVE_BINARY
            raise failed(code, str(error)) from error
        except BlobError as error:
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, str(error)) from error
        self.metadata = self._original.metadata
        self.tensors = (*self.metadata.inputs, *self.metadata.outputs)
        """The arguments: inputs, then outputs."""
        self.parameter_names = _tensor_names(self.metadata.parameters)
        """What the OpenVINO model calls an input, by its name here."""
        self.result_names = _tensor_names(self.metadata.results)
        self._loaded = False
        self._idle: list[HostParsedInference] = []
        self._recorded: list[HostParsedInference] = []

    def initialize(self) -> None:
        """Load the blob; a second call does nothing.

        Raises:
            ZeError: OUT_OF_DEVICE_MEMORY, or UNKNOWN if the blob's content is malformed.
        """
        if self._loaded:
            return
        try:
            self._original.load(self.context.space)
        except OutOfMemory as error:
            code = ze_result_t.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
            raise failed(code, str(error)) from error
        except BlobError as error:
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNKNOWN, str(error)) from error
        self._loaded = True
        self._idle.append(self._original)

    def record(self) -> HostParsedInference:
        """Give an inference tied to the present arguments, for one recording to keep.

        Raises:
            ZeError: UNINITIALIZED: an argument is missing; INVALID_ARGUMENT: it is too small, or
                not memory of the graph's context; UNKNOWN: a relocation of the blob cannot be
                applied; else as ``initialize``.
        """
        addresses = [self._address(index) for index in range(len(self.tensors))]
        self.initialize()
        try:
            inference = self._idle.pop() if self._idle else self._original.clone()
        except OutOfMemory as error:
            code = ze_result_t.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
            raise failed(code, str(error)) from error
        self._recorded.append(inference)
        count = len(self.metadata.inputs)
        try:
            inference.apply_input_output(addresses[:count], addresses[count:])
        except BlobError as error:
            self.release(inference)
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNKNOWN, str(error)) from error
        return inference

    def release(self, inference: HostParsedInference) -> None:
        """Take an inference back from its recording."""
        if inference in self._recorded:
            self._recorded.remove(inference)
            self._idle.append(inference)

    def destroy(self) -> None:
        """Unload; nothing that uses it may be executing."""
        for inference in (*self._idle, *self._recorded):
            self.context.device.npu.forget(self.context.space, inference.address)
            inference.free()
        self._idle, self._recorded = [], []
        self.alive = False

    def _address(self, index: int) -> int:
        tensor = self.tensors[index]
        pointer = self.arguments.get(index)
        if pointer is None:
            message = f"argument {index}, {tensor.name!r}, is not set"
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNINITIALIZED, message)
        return self.context.address_of(pointer, tensor.nbytes)
