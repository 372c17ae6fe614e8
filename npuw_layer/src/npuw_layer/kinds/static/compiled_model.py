"""Static models ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from npuw_layer.api.in_order import order_of
from npuw_layer.api.ready_model import ReadyModel
from npuw_layer.kinds.static.batched_request import BatchedInferRequest
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.exported import export_static
from npuw_layer.kinds.static.infer_request import StaticInferRequest
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.remote.context import RemoteContext


class _OneProgram(ReadyModel[CompiledStatic, StaticPort, StaticPort]):
    """A model of one program, whose requests may run in order.

    Args:
        compiled: the loaded program.
    """

    def __init__(self, compiled: CompiledStatic) -> None:
        super().__init__(compiled)
        self._place = order_of(compiled.options)

    @property
    def inputs(self) -> list[StaticPort]:
        """Inputs of the model, without variables."""
        return self._batched(self._compiled.inputs)

    @property
    def outputs(self) -> list[StaticPort]:
        """Outputs of the model, without variables."""
        return self._batched(self._compiled.outputs)

    def get_context(self) -> RemoteContext:
        """Return the context of the Core; requests without a batch bind its tensors in place."""
        return RemoteContext(self._compiled.npu)

    def _write(self, file: BinaryIO) -> None:
        if self._compiled.options.use_npuw:
            export_static(self._compiled, file)
            return
        # Imported here: few models are exported.
        from npuw_layer.kinds.static.native_blob.exported import export_native

        export_native(self._compiled, file)

    def _batched(self, ports: Sequence[StaticPort]) -> list[StaticPort]:
        """Return ports with the batch of a model that runs item by item."""
        batch = self._compiled.batch
        return list(ports) if batch is None else [port.with_batch(batch) for port in ports]


class StaticCompiledModel(_OneProgram):
    """A static model that takes the complete batch."""

    def create_infer_request(self) -> StaticInferRequest:
        """Create an independent request."""
        return StaticInferRequest(self._compiled, self._place())


class BatchedCompiledModel(_OneProgram):
    """A static model that runs item by item, for a fixed or open batch."""

    def create_infer_request(self) -> BatchedInferRequest:
        """Create an independent request."""
        return BatchedInferRequest(self._compiled, self.inputs, self.outputs, self._place())


StaticModel = StaticCompiledModel | BatchedCompiledModel


def ready_static(compiled: CompiledStatic) -> StaticModel:
    """Return the ready model of a compiled static model, with or without item-by-item batches."""
    make = StaticCompiledModel if compiled.batch is None else BatchedCompiledModel
    return make(compiled)
