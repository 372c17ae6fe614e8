"""Static models ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from typing import BinaryIO, TypeVar

from npuw_layer.api.in_order import order_of
from npuw_layer.api.ready_model import ReadyModel
from npuw_layer.kinds.static.batched_port import BatchedPort
from npuw_layer.kinds.static.batched_request import BatchedInferRequest
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.exported import export_static
from npuw_layer.kinds.static.infer_request import StaticInferRequest
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.remote.context import RemoteContext

P = TypeVar("P", StaticPort, BatchedPort)


class _OneProgram(ReadyModel[CompiledStatic, P, P]):
    """A model of one program, whose requests may run in order.

    Args:
        compiled: the loaded program.
    """

    def __init__(self, compiled: CompiledStatic) -> None:
        super().__init__(compiled)
        self._place = order_of(compiled.options)

    def get_context(self) -> RemoteContext:
        """Return the context of the Core; requests without a batch bind its tensors in place."""
        return RemoteContext(self._compiled.npu)

    def _write(self, file: BinaryIO) -> None:
        export_static(self._compiled, file)


class StaticCompiledModel(_OneProgram[StaticPort]):
    """A static model that takes the complete batch."""

    @property
    def inputs(self) -> list[StaticPort]:
        """Inputs of the model, without variables."""
        return list(self._compiled.inputs)

    @property
    def outputs(self) -> list[StaticPort]:
        """Outputs of the model, without variables."""
        return list(self._compiled.outputs)

    def create_infer_request(self) -> StaticInferRequest:
        """Create an independent request."""
        return StaticInferRequest(self._compiled, self._place())


class BatchedCompiledModel(_OneProgram[BatchedPort]):
    """A static model that runs item by item, for a fixed or open batch.

    Args:
        compiled: the program of one item.
        batch: the batch that ports show.
    """

    def __init__(self, compiled: CompiledStatic, batch: int) -> None:
        super().__init__(compiled)
        self._batch = batch

    @property
    def inputs(self) -> list[BatchedPort]:
        """Inputs of the model."""
        return [BatchedPort.of(port, self._batch) for port in self._compiled.inputs]

    @property
    def outputs(self) -> list[BatchedPort]:
        """Outputs of the model."""
        return [BatchedPort.of(port, self._batch) for port in self._compiled.outputs]

    def create_infer_request(self) -> BatchedInferRequest:
        """Create an independent request."""
        return BatchedInferRequest(self._compiled, self.inputs, self.outputs, self._place())


StaticModel = StaticCompiledModel | BatchedCompiledModel


def ready_static(compiled: CompiledStatic) -> StaticModel:
    """Return the ready model of a compiled static model, with or without item-by-item batches."""
    if compiled.batch is None:
        return StaticCompiledModel(compiled)
    return BatchedCompiledModel(compiled, compiled.batch)
