"""Compiled language model of a pipeline, and the generations that it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from genai_layer.abilities import ReportsExecution
from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.language_model import TOKENS, Inputs, LanguageModel
from genai_layer.decoding.methods import decode
from genai_layer.decoding.reads import Task
from genai_layer.decoding.stopwatch import Stopwatch, TokenTimes
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.decoding.truncation import Truncation
from genai_layer.detokenizer import TextDecoder
from genai_layer.errors import runtime_failures
from genai_layer.generation_config import GenerationConfig
from genai_layer.grammars.compiler import GrammarCompiler
from genai_layer.lora.adapter_config import AdapterConfig
from genai_layer.lora.controller import compile_with, control
from genai_layer.npu import StaticLengths, settled_lengths
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.prompt import Prompt
from genai_layer.prompt_limits import fitted, limits_of, texts_side_by_side, truncation_of
from genai_layer.runtime import AnyModel, Array, CompiledModel, Core, InferRequest
from genai_layer.sinks import Streamer, sink_of_one_text
from genai_layer.speculation.draft_model import Place
from genai_layer.speculation.perf_metrics import metrics_of_models
from genai_layer.speculation.request import Speculation
from genai_layer.tokenizer import Tokenizer

_log = logging.getLogger(__name__)

Metrics = TypeVar("Metrics", bound=PerfMetrics, covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[Metrics]):
    """One call of a pipeline's ``generate``."""

    config: GenerationConfig
    """Validated parameters."""
    streamer: Streamer
    began: Stopwatch
    metrics: Metrics
    """Metrics of the call, to which each step adds its durations."""


Generated = list[list[GeneratedSequence]]
"""Texts of each prompt."""


class Together(Protocol):
    """Slots of a model, in which texts are generated side by side."""

    def complete(self, tasks: Sequence[Task], began: Stopwatch) -> Generated:
        """Continue prompts; measurements are added in the order of the prompts.

        Args:
            tasks: the prompts.
            began: start of the call.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        ...

    def forget_tokens(self) -> None:
        """Forget the tokens that the slots keep."""
        ...

    def execution_report(self) -> Mapping[str, str]:
        """Return the runtime's facts on the last step; empty if it reports none."""
        ...


OpenSlots = Callable[
    [CompiledModel, StaticLengths | None, Tokenizer, Callable[[], Mapping[str, Array]]],
    Together | None,
]
"""Returns a model's slots, None if it has one only; the callable returns values of adapters."""


def _no_slots(*_: object) -> None:
    """Return no slots."""


@dataclass(frozen=True, slots=True)
class Target:
    """Device that a language model is compiled for."""

    core: Core
    device: str
    """E.g. "NPU"."""
    properties: Mapping[str, Any]
    """Properties of the runtime."""
    lengths: StaticLengths | None
    """Lengths of an NPU's programs; None elsewhere, and for a blob, which has its own."""
    from_blob: bool = False
    """True if the runtime imports the model from BLOB_PATH."""
    open_slots: OpenSlots = _no_slots
    wishes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further properties, left out if the runtime rejects them for a model."""

    def compile(
        self, find: Callable[[], AnyModel], adapters: AdapterConfig | None
    ) -> CompiledModel:
        """Compile a model with room for adapters, and with the wishes unless they are rejected."""
        if wishes := {each: self.wishes[each] for each in self.wishes.keys() - self.properties}:
            try:
                wished = {**wishes, **self.properties}
                return compile_with(self.core, find(), self.device, wished, adapters)
            except RuntimeError as error:
                _log.warning("%s: left out, as %s", ", ".join(sorted(wishes)), error)
        return compile_with(self.core, find(), self.device, self.properties, adapters)


_NOTHING = Prompt([])


class TextGenerator:
    """Language model that continues prompts.

    Args:
        find: returns the model.
        target: the device.
        adapters: LoRA adapters that generations may use.
        tokenizer: the model's.
        speculation: the requested source of candidates.
        given: properties that the pipeline was created with, for a draft model.

    Raises:
        ModelError: the model is missing.
        PropertyError: the runtime does not support adapters; or see ``Speculation.open``.
        AdapterError: an adapter belongs to another model, or its rank is too large.
        RuntimeFailure: the runtime cannot compile the model.
    """

    def __init__(
        self,
        find: Callable[[], AnyModel],
        target: Target,
        adapters: AdapterConfig | None,
        tokenizer: Tokenizer,
        speculation: Speculation,
        given: Mapping[str, Any],
    ) -> None:
        from_blob = target.from_blob
        with runtime_failures():
            inserted = None if from_blob else adapters
            compiled = target.compile(find, inserted)
            self._request: InferRequest = compiled.create_infer_request()
            self.lengths = settled_lengths(compiled, target.lengths, from_blob)
            """Lengths of an NPU's programs; None on other devices."""
        place = Place(target.device, given, target.core, tokenizer)
        self._adapters = control(self._request, adapters, from_blob)
        self._grammars = GrammarCompiler(tokenizer)
        self._tokenizer = tokenizer
        self._assistant = speculation.open(place, self.lengths)
        self._stored = StoredTokens(self._request, compiled, self.lengths)
        self._shortened: Prompt | Truncation = _NOTHING
        with runtime_failures():
            slots = target.open_slots(compiled, self.lengths, tokenizer, self._adapters.values)
        self._slots = slots
        self._last: object = self._request
        """The request or slots of the last generation."""

    def run(
        self,
        prompts: Sequence[Prompt],
        call: Call[PerfMetrics],
        inputs: Inputs = TOKENS,
        *,
        continues: bool = False,
    ) -> Generated:
        """Continue prompts, of which all are checked first.

        Several texts are generated side by side in the model's slots, if there are any; otherwise
        one prompt is continued after the other.

        Args:
            prompts: the prompts.
            call: parameters, streamer and metrics.
            inputs: the model's inputs.
            continues: whether prompts continue after stored tokens, as turns of a chat do. Other
                prompts are read from the start, so that equal ones have equal texts: a prompt that
                is read in other parts may be rounded otherwise.

        Returns:
            The texts of each prompt, highest score first.

        Raises:
            ConfigError: the parameters exclude each other, or a grammar is broken.
            PromptError: a prompt is empty or too long, or has an unknown id.
            AdapterError: the pipeline has no such adapter.
            TemplateError: the chat template rejects a chat without its oldest turns.
            RuntimeFailure: the runtime failed.
        """
        self._shortened = _NOTHING
        config, metrics, vocabulary = call.config, call.metrics, self._tokenizer.vocabulary_size
        prompts = [fitted(prompt, self.lengths) for prompt in prompts]
        limits = [limits_of(one.ids, config, vocabulary, self.lengths) for one in prompts]
        sink = sink_of_one_text(call.streamer, config, len(prompts))
        constraint = self._grammars.constraint(config, metrics)
        if self._adapters.changes(config.adapters):
            self.forget_tokens()
        self._adapters.apply(config.adapters)
        assistant, raw = self._assistant, metrics.raw_metrics
        drafters = [assistant.drafter(one.ids, config) if assistant else None for one in prompts]
        tasks = [
            Task(
                prompt=prompt.ids,
                config=config,
                limits=limit,
                model=LanguageModel(self._stored, raw, inputs),
                decode=TextDecoder(self._tokenizer),
                sink=sink,
                raw=raw,
                times=TokenTimes(raw, call.began),
                constraint=constraint and constraint.fork(),
                drafter=drafter,
                truncation=truncation_of(prompt, config, self.lengths),
            )
            for prompt, limit, drafter in zip(prompts, limits, drafters, strict=True)
        ]
        for prompt, task in zip(prompts, tasks, strict=True):
            self._shortened = task.truncation or prompt
            prompt.warn()
        several = len(tasks) * texts_side_by_side(config) > 1
        results: Generated = []
        if self._slots is not None and several and not any(drafters):
            self._last = self._slots
            if not continues:
                self._slots.forget_tokens()
            results = self._slots.complete(tasks, call.began)
        else:
            self._last = self._request
            for task in tasks:
                if not continues:
                    self._stored.forget()
                results.append(decode(task))
        metrics.num_input_tokens += sum(len(one.ids) for one in prompts)
        metrics.num_generated_tokens = sum(raw.m_batch_sizes)
        raw.generate_durations.append(call.began.microseconds())
        metrics.by_model = metrics_of_models(metrics, drafters)
        return results

    def forget_tokens(self) -> None:
        """Forget all tokens that the model has stored.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        with runtime_failures():
            self._stored.reset()
        if self._slots is not None:
            self._slots.forget_tokens()

    def execution_report(self) -> Mapping[str, str]:
        """Return facts on the last generation: the runtime's, and tokens that are left out."""
        last = self._last
        facts: Mapping[str, str] = {}
        if isinstance(last, ReportsExecution):
            facts = last.execution_report()
        left_out = self._shortened.left_out
        return {**facts, "left out": left_out} if left_out else facts
