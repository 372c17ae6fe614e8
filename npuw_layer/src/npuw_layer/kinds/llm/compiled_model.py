"""Language models ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from npuw_layer.api.model_port import OpenPort
from npuw_layer.api.properties import CONTINUOUS_PREFILL_SUPPORTED, Facts
from npuw_layer.api.ready_model import ReadyModel
from npuw_layer.backends.protocols import ImportsMemory, ShowsTimeline, ability
from npuw_layer.batching.engine import ContinuousBatching
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.execution.offload.report import ReportsOffload
from npuw_layer.llm.compiled import CompiledLLM, export_llm
from npuw_layer.llm.kv.row_layouts import CacheSize
from npuw_layer.llm.request.infer_request import InferRequest
from npuw_layer.llm.request.make_cache import cache_states
from npuw_layer.llm.request.model_ports import inputs_of, outputs_of
from npuw_layer.llm.request.prompt_plan import PromptPlan, plan_prompt, with_lengths
from npuw_layer.remote.context import RemoteContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuw_layer.backends.protocols import TaskSpan
    from npuw_layer.execution.offload.report import OffloadReport


class SplitModel(ReadyModel[CompiledLLM, OpenPort, OpenPort]):
    """Base of all models that NPUW split."""

    def get_context(self) -> RemoteContext:
        """Return the context of the Core, whose tensors the model's requests accept.

        Raises:
            RemoteError: the model does not run on the NPU.
        """
        compiled = self._compiled
        npu = ability(compiled.device, ImportsMemory)
        if npu is None:
            raise RemoteError(
                f"NPUW_DEVICES = {compiled.options.devices}: remote tensors are NPU memory, but "
                "the model does not run on the NPU; use host tensors"
            )
        return RemoteContext(npu)

    def offload_report(self) -> OffloadReport | None:
        """Return the offloaded weights and their cost; None without NPUW_WEIGHTS_OFFLOAD."""
        device = ability(self._compiled.device, ReportsOffload)
        return None if device is None else device.offload_report()

    def _write(self, file: BinaryIO) -> None:
        export_llm(self._compiled, file)


class CompiledModel(SplitModel):
    """An LLM ready to run."""

    @property
    def inputs(self) -> list[OpenPort]:
        """Inputs of the exported model, before splitting."""
        return inputs_of(self._compiled)

    @property
    def outputs(self) -> list[OpenPort]:
        """Outputs of the exported model."""
        return outputs_of(self._compiled)

    def _facts(self) -> Facts:
        """Return the facts of all models, and whether several tokens may follow stored ones."""
        supported = self._compiled.plan.resumes
        return {**super()._facts(), CONTINUOUS_PREFILL_SUPPORTED: lambda: supported}

    def create_infer_request(self) -> InferRequest:
        """Begin an independent conversation."""
        return InferRequest(self._compiled)

    def create_batching(self, places: int = 0) -> ContinuousBatching:
        """Create a batching, in which up to NPUW_LLM_BATCH_SLOTS conversations run at once.

        Args:
            places: number of conversations that hold caches at the same time; 0 means one per slot.
        """
        return ContinuousBatching(self._compiled, places)

    def plan_prompt(
        self, tokens: int, max_prompt_len: int | None = None, min_response_len: int | None = None
    ) -> PromptPlan:
        """Return what would run for a prompt of a new conversation.

        Args:
            tokens: tokens of the prompt.
            max_prompt_len: NPUW_LLM_MAX_PROMPT_LEN to plan with; None for the model's.
            min_response_len: NPUW_LLM_MIN_RESPONSE_LEN to plan with; None for the model's.

        Raises:
            TensorError: there is no token.
            OptionError: a length is out of range, or contradicts other options.
        """
        options = with_lengths(self._compiled.options, max_prompt_len, min_response_len)
        size = CacheSize.of(cache_states(self._compiled))
        return plan_prompt(options, size, tokens)

    def timeline(self, program: str, /) -> Sequence[TaskSpan] | None:
        """Return the times of a static model's tasks on the device.

        Args:
            program: name of the static model, e.g. "generate_256".

        Returns:
            The tasks in the order of their begin; None if the device has no timelines, or the model
            runs as several programs.

        Raises:
            TensorError: there is no such static model.
            DeviceError: the program does not record the operations of its tasks.
        """
        model = self._compiled.submodels.get(program)
        if model is None:
            names = ", ".join(self._compiled.submodels)
            raise TensorError(f"no static model {program!r}; there are {names}")
        shown = ability(model, ShowsTimeline)
        return None if shown is None else shown.timeline()
