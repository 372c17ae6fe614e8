"""A model ready to run, as OpenVINO's Python API gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from npuw_layer.api.model_port import OpenPort
from npuw_layer.api.properties import CONTINUOUS_PREFILL_SUPPORTED, Facts
from npuw_layer.api.ready_model import ReadyModel
from npuw_layer.backends.protocols import ImportsMemory, ability
from npuw_layer.batching.engine import ContinuousBatching
from npuw_layer.errors import RemoteError
from npuw_layer.execution.offload.report import ReportsOffload
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.exported import export_llm
from npuw_layer.llm.request.infer_request import InferRequest
from npuw_layer.llm.request.model_ports import inputs_of, outputs_of
from npuw_layer.remote.context import RemoteContext

if TYPE_CHECKING:
    from npuw_layer.execution.offload.report import OffloadReport


class SplitModel(ReadyModel[CompiledLLM, OpenPort, OpenPort]):
    """What all models that NPUW split have in common."""

    def get_context(self) -> RemoteContext:
        """Give the context whose tensors its requests take: that of its Core.

        Raises:
            RemoteError: it runs on other devices than the NPU.
        """
        compiled = self._compiled
        npu = ability(compiled.device, ImportsMemory)
        if npu is None:
            raise RemoteError(
                f"NPUW_DEVICES = {compiled.options.devices}: remote tensors are memory of the NPU, "
                "which the model does not run on"
            )
        return RemoteContext(npu)

    def offload_report(self) -> OffloadReport | None:
        """What is offloaded, and what that costs; None without NPUW_WEIGHTS_OFFLOAD."""
        device = ability(self._compiled.device, ReportsOffload)
        return None if device is None else device.offload_report()

    def _write(self, file: BinaryIO) -> None:
        export_llm(self._compiled, file)


class CompiledModel(SplitModel):
    """An LLM ready to run."""

    @property
    def inputs(self) -> list[OpenPort]:
        """Its inputs, as it was exported with: before it was split."""
        return inputs_of(self._compiled)

    @property
    def outputs(self) -> list[OpenPort]:
        """Its outputs, as it was exported with."""
        return outputs_of(self._compiled)

    def _facts(self) -> Facts:
        """As of all models, and whether npuw_stored_tokens_state may be set."""
        supported = self._compiled.options.enable_continuous_prefill
        return {**super()._facts(), CONTINUOUS_PREFILL_SUPPORTED: lambda: supported}

    def create_infer_request(self) -> InferRequest:
        """Begin a conversation, independent of all others."""
        return InferRequest(self._compiled)

    def create_batching(self, places: int = 0) -> ContinuousBatching:
        """Let several conversations share the device; NPUW_LLM_BATCH_SLOTS says how many at once.

        Args:
            places: how many conversations hold caches at the same time; 0 is as many as slots.
        """
        return ContinuousBatching(self._compiled, places)
