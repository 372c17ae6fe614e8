"""A static model that is run item by item, ready to run."""

from __future__ import annotations

from typing import BinaryIO

from npuw_layer.api.in_order import order_of
from npuw_layer.api.ready_model import ReadyModel
from npuw_layer.kinds.static.batched_port import BatchedPort
from npuw_layer.kinds.static.batched_request import BatchedInferRequest
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.compiled_model import StaticCompiledModel
from npuw_layer.kinds.static.exported import export_static
from npuw_layer.remote.context import RemoteContext


class BatchedCompiledModel(ReadyModel[CompiledStatic, BatchedPort, BatchedPort]):
    """A static model whose inferences take any number of items, or as many as it was made for.

    Args:
        compiled: the program of one item.
        batch: as ports show it.
    """

    def __init__(self, compiled: CompiledStatic, batch: int) -> None:
        super().__init__(compiled)
        self._batch = batch
        self._place = order_of(compiled.options)

    @property
    def inputs(self) -> list[BatchedPort]:
        """Its inputs."""
        return [BatchedPort.of(port, self._batch) for port in self._compiled.inputs]

    @property
    def outputs(self) -> list[BatchedPort]:
        """Its outputs."""
        return [BatchedPort.of(port, self._batch) for port in self._compiled.outputs]

    def create_infer_request(self) -> BatchedInferRequest:
        """Make a request, independent of all others."""
        return BatchedInferRequest(self._compiled, self.inputs, self.outputs, self._place())

    def get_context(self) -> RemoteContext:
        """Give the context of its Core; remote tensors are copied item by item."""
        return RemoteContext(self._compiled.npu)

    def _write(self, file: BinaryIO) -> None:
        export_static(self._compiled, file)


StaticModel = StaticCompiledModel | BatchedCompiledModel
"""A static model, whoever takes its batch."""


def ready_static(compiled: CompiledStatic) -> StaticModel:
    """Give a compiled static model as what runs it."""
    if compiled.batch is None:
        return StaticCompiledModel(compiled)
    return BatchedCompiledModel(compiled, compiled.batch)
