"""Static models ready to run, as OpenVINO's Python API gives them."""

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
    """A model that is one program, whose requests may run in order.

    Args:
        compiled: its program.
    """

    def __init__(self, compiled: CompiledStatic) -> None:
        super().__init__(compiled)
        self._place = order_of(compiled.options)

    def get_context(self) -> RemoteContext:
        """Return the context of its Core; requests of one item bind its tensors in place."""
        return RemoteContext(self._compiled.npu)

    def _write(self, file: BinaryIO) -> None:
        export_static(self._compiled, file)


class StaticCompiledModel(_OneProgram[StaticPort]):
    """A static model that takes its batch itself."""

    @property
    def inputs(self) -> list[StaticPort]:
        """Its inputs, without variables."""
        return list(self._compiled.inputs)

    @property
    def outputs(self) -> list[StaticPort]:
        """Its outputs, without variables."""
        return list(self._compiled.outputs)

    def create_infer_request(self) -> StaticInferRequest:
        """Make a request, independent of all others."""
        return StaticInferRequest(self._compiled, self._place())


class BatchedCompiledModel(_OneProgram[BatchedPort]):
    """A static model that runs item by item, for any number of items or a fixed one.

    Args:
        compiled: the program of one item.
        batch: as ports show it.
    """

    def __init__(self, compiled: CompiledStatic, batch: int) -> None:
        super().__init__(compiled)
        self._batch = batch

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


StaticModel = StaticCompiledModel | BatchedCompiledModel


def ready_static(compiled: CompiledStatic) -> StaticModel:
    """Return a compiled static model as a model of its batch."""
    if compiled.batch is None:
        return StaticCompiledModel(compiled)
    return BatchedCompiledModel(compiled, compiled.batch)
