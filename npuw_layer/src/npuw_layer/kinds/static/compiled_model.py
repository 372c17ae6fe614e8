"""A static model ready to run, as OpenVINO's Python API gives it."""

from __future__ import annotations

from typing import BinaryIO

from npuw_layer.api.in_order import order_of
from npuw_layer.api.ready_model import ReadyModel
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.exported import export_static
from npuw_layer.kinds.static.infer_request import StaticInferRequest
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.remote.context import RemoteContext


class StaticCompiledModel(ReadyModel[CompiledStatic, StaticPort, StaticPort]):
    """A static model ready to run.

    Args:
        compiled: its program.
    """

    def __init__(self, compiled: CompiledStatic) -> None:
        super().__init__(compiled)
        self._place = order_of(compiled.options)

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

    def get_context(self) -> RemoteContext:
        """Give the context whose tensors its requests bind in place: that of its Core."""
        return RemoteContext(self._compiled.npu)

    def _write(self, file: BinaryIO) -> None:
        export_static(self._compiled, file)
