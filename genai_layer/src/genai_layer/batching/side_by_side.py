"""Texts of one call of ``LLMPipeline``, side by side in the slots of its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from genai_layer.abilities import ReportsExecution, SupportsBatching
from genai_layer.batching.places import Places
from genai_layer.batching.request import Request
from genai_layer.batching.scheduler import Scheduler
from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.reads import Task
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.detokenizer import TextDecoder
from genai_layer.npu import StaticLengths, slots_of
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.runtime import Array, CompiledModel
from genai_layer.tokenizer import Tokenizer


class SideBySide:
    """Slots of a model for the texts of one call; ``text_generator.Together``.

    Args:
        places: the slots.
        tokenizer: the model's.
    """

    def __init__(self, places: Places, tokenizer: Tokenizer) -> None:
        self._places = places
        self._scheduler = Scheduler(places, TextDecoder(tokenizer))

    def complete(self, tasks: Sequence[Task], began: Stopwatch) -> list[list[GeneratedSequence]]:
        """Continue prompts; the measurements of each are added in the order of the prompts.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        requests = [_request(task, began) for task in tasks]
        self._scheduler.complete(requests)
        for task, request in zip(tasks, requests, strict=True):
            task.raw.join(request.metrics.raw_metrics)
        return [request.texts for request in requests]

    def forget_tokens(self) -> None:
        """Forget the tokens that the slots keep."""
        self._places.requests.forget()

    def execution_report(self) -> Mapping[str, str]:
        """Return the runtime's facts on the last step; empty if it reports none."""
        batching = self._places.batching
        return batching.execution_report() if isinstance(batching, ReportsExecution) else {}


def open_slots(
    compiled: CompiledModel,
    lengths: StaticLengths | None,
    tokenizer: Tokenizer,
    adapter: Callable[[], Mapping[str, Array]],
) -> SideBySide | None:
    """Return the slots of a compiled model; None if it has one only.

    Args:
        compiled: the model.
        lengths: lengths of an NPU's programs.
        tokenizer: the model's.
        adapter: returns the values of the current adapter's states.
    """
    slots = slots_of(compiled)
    if slots == 1 or not isinstance(compiled, SupportsBatching):
        return None
    return SideBySide(Places(compiled, slots, lengths, adapter=adapter), tokenizer)


def _request(task: Task, began: Stopwatch) -> Request:
    request = Request(None, task.prompt, task.config, task.limits, task.sink, PerfMetrics(), began)
    request.constraint, request.truncation = task.constraint, task.truncation
    return request
