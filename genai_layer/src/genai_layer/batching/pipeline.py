"""Continuous batching: several generations at a time, on one model.

Source: openvino_genai.ContinuousBatchingPipeline, docs/reference/genai.md#continuous-batching; the
README lists deliberate differences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any, overload

from genai_layer.batching.compiled import compile_batched
from genai_layer.batching.constructor import read_arguments
from genai_layer.batching.generate_call import Configs, PromptIds, Prompts, ids_of, read_call
from genai_layer.batching.handle import GenerationHandle
from genai_layer.batching.metrics import PipelineMetrics
from genai_layer.batching.request import Request
from genai_layer.batching.results import (
    EncodedGenerationResult,
    GenerationResult,
    decoded_result,
    encoded_result,
)
from genai_layer.batching.scheduler import Scheduler
from genai_layer.batching.status import GenerationStatus
from genai_layer.chat_calls import warn_of_chat_call
from genai_layer.chat_history import ChatHistory
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.decoding.task import Sink
from genai_layer.errors import BusyError, ConfigError, PromptError
from genai_layer.exclusive import Exclusive, one_at_a_time
from genai_layer.generation_config import GenerationConfig
from genai_layer.grammars.compiler import GrammarCompiler
from genai_layer.model_folder import read_generation_config, read_tokenizer
from genai_layer.parsers.results import begin_parsing
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.prompt_encoder import PromptEncoder
from genai_layer.runtime import Core
from genai_layer.runtimes import load_core
from genai_layer.scheduler.config import SchedulerConfig
from genai_layer.sinks import NoSink, Streamer, sink_of_one_text
from genai_layer.tokenizer import Tokenizer


class ContinuousBatchingPipeline(Exclusive):
    """Text generation for several requests, which join and leave between steps.

    Any thread may add requests and use their handles; one thread at a time runs steps.

    Args:
        models_path: folder with ``openvino_model.xml``, or a Hugging Face folder.
        args: scheduler_config, device, properties (of the runtime, a dictionary) and, without
            effect, tokenizer_properties and vision_encoder_properties. Or: tokenizer,
            scheduler_config, device.
        core: a runtime, instead of the device's.
        named: the same by name; after a tokenizer, also properties of the runtime.

    Raises:
        TypeError: an argument is missing, unknown or given twice.
        ModelError: the folder lacks a file, or one of its files is broken.
        PropertyError: a property, the device or a setting of the scheduler is not supported.
        RuntimeFailure: the runtime cannot compile the model.
    """

    @overload
    def __init__(
        self,
        models_path: str | bytes | os.PathLike[str],
        scheduler_config: SchedulerConfig,
        device: str,
        properties: Mapping[str, Any] = ...,
        tokenizer_properties: Mapping[str, Any] = ...,
        vision_encoder_properties: Mapping[str, Any] = ...,
        *,
        core: Core | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        models_path: str | bytes | os.PathLike[str],
        tokenizer: Tokenizer,
        scheduler_config: SchedulerConfig,
        device: str,
        *,
        core: Core | None = None,
        **properties: Any,
    ) -> None: ...

    def __init__(
        self,
        models_path: str | bytes | os.PathLike[str],
        *args: Any,
        core: Core | None = None,
        **named: Any,
    ) -> None:
        watch = Stopwatch()
        given = read_arguments(args, named)
        folder = Path(os.fsdecode(models_path))
        self._tokenizer = given.tokenizer or read_tokenizer(folder)
        self._prompts = PromptEncoder(self._tokenizer)
        self._grammars = GrammarCompiler(self._tokenizer)
        self._config = read_generation_config(folder, self._tokenizer)
        core = load_core(given.device) if core is None else core
        self._model = compile_batched(core, folder, given.device, given.properties, given.scheduler)
        self._scheduler = Scheduler(self._model.places, self._tokenizer.decode)
        self._chat: ChatHistory | None = None
        self._load_time = watch.microseconds() / 1000

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return self._tokenizer

    def get_config(self) -> GenerationConfig:
        """Return a copy of the model's default parameters."""
        return self._config.model_copy(deep=True)

    def get_metrics(self) -> PipelineMetrics:
        """Return the metrics of the last step."""
        return self._scheduler.metrics

    @overload
    def add_request(
        self, request_id: int, prompt: str | PromptIds, generation_config: GenerationConfig
    ) -> GenerationHandle: ...
    @overload
    def add_request(
        self, request_id: int, *, input_ids: PromptIds, generation_config: GenerationConfig
    ) -> GenerationHandle: ...

    def add_request(
        self,
        request_id: int,
        prompt: str | PromptIds | None = None,
        generation_config: GenerationConfig | None = None,
        *,
        input_ids: PromptIds | None = None,
    ) -> GenerationHandle:
        """Add a prompt; later steps generate from it.

        Args:
            request_id: a number that no request has that waits or runs.
            prompt: a text, to which no chat template is applied; or ids i64 [n] or [1, n].
            generation_config: parameters; missing stop tokens are the model's.
            input_ids: ids, in place of ``prompt``.

        Raises:
            TypeError: an argument is missing, or the number is no integer.
            ConfigError: parameters contradict each other, or the number is in use.
            PromptError: the prompt is empty or too long, or has an unknown id.
        """
        prompt = input_ids if prompt is None else prompt
        if prompt is None or generation_config is None:
            raise TypeError("add_request: pass request_id, prompt and generation_config")
        number = index(request_id)
        if number < 0:
            raise ConfigError(f"request_id = {number}: pass an integer of 0 or more")
        if generation_config.echo:
            raise ConfigError(
                "echo: outputs have log-probabilities, which are not computed for the prompt; "
                "set echo to False, and prepend the prompt"
            )
        began, metrics = Stopwatch(), PerfMetrics(self._load_time)
        if isinstance(prompt, str):
            ids = self._prompts.plain(prompt, metrics.raw_metrics)
        else:
            ids = ids_of(prompt)
        config = self._checked(generation_config)
        request = self._request(number, ids, config, metrics, began, NoSink())
        self._scheduler.add(request)
        return GenerationHandle(request.stream, generation_config.num_return_sequences)

    @one_at_a_time
    def step(self) -> None:
        """Compute a token of each running request, and pass the tokens to the handles.

        Of a prompt that is longer than a chunk of the runtime, a step reads one chunk. An error
        ends the request that it affects, and is raised by its handle.

        Raises:
            BusyError: another step runs.
            RuntimeFailure: the runtime's batching failed.
        """
        self._scheduler.step()

    def has_non_finished_requests(self) -> bool:
        """Return whether a request waits or runs."""
        return self._scheduler.busy

    @overload
    def generate(
        self,
        prompts: str | Sequence[str] | Sequence[ChatHistory],
        generation_config: Configs,
        streamer: Streamer = None,
    ) -> list[GenerationResult]: ...
    @overload
    def generate(
        self,
        prompts: Sequence[PromptIds],
        generation_config: Configs,
        streamer: Streamer = None,
    ) -> list[EncodedGenerationResult]: ...
    @overload
    def generate(
        self, *, generation_config: Configs, streamer: Streamer = None, **prompts: Any
    ) -> list[GenerationResult] | list[EncodedGenerationResult]: ...

    @one_at_a_time
    def generate(
        self,
        prompts: Prompts | None = None,
        generation_config: Configs | None = None,
        streamer: Streamer = None,
        *,
        prompt: str | None = None,
        input_ids: Sequence[PromptIds] | None = None,
        histories: Sequence[ChatHistory] | None = None,
    ) -> list[GenerationResult] | list[EncodedGenerationResult]:
        """Generate from all prompts side by side.

        Args:
            prompts: texts, histories, or the ids of each prompt; or one text.
            generation_config: parameters of each prompt; or of the one text.
            streamer: receives the text of a single prompt; see ``LLMPipeline.generate``.
            prompt: one text, in place of ``prompts``.
            input_ids: ids of each prompt, in place of ``prompts``.
            histories: in place of ``prompts``.

        Returns:
            A GenerationResult for each prompt; of ids, an EncodedGenerationResult.

        Raises:
            BusyError: requests have not ended, or another thread generates.
            ConfigError: parameters contradict each other, or are not as many as prompts.
            PromptError: a prompt is empty or too long.
            TemplateError: the chat template fails.
            RuntimeFailure: the runtime failed.
        """
        began = Stopwatch()
        given = next(
            (one for one in (prompts, prompt, input_ids, histories) if one is not None), None
        )
        inputs, configs = read_call(given, generation_config)
        if self._scheduler.busy:
            raise BusyError("generate: requests have not ended; run steps, or use add_request")
        checked = [self._checked(config) for config in configs]
        chat = None
        if self._chat is not None and isinstance(inputs[0], str):
            chat = _with_turn(self._chat, inputs)
            inputs = [chat]
        requests = [
            self._encode(one, config, streamer, len(inputs), began)
            for one, config in zip(inputs, checked, strict=True)
        ]
        begin_parsing(streamer)
        self._run(requests)
        if isinstance(inputs[0], list):
            return [encoded_result(number, one) for number, one in enumerate(requests)]
        results = [decoded_result(number, one) for number, one in enumerate(requests)]
        if chat is not None and results[0].m_status is not GenerationStatus.CANCEL:
            chat.append({"role": "assistant", "content": results[0].m_generation_ids[0]})
            self._chat = chat
        return results

    @one_at_a_time
    def start_chat(self, system_message: str = "") -> None:
        """Begin a conversation: texts passed to ``generate`` become its turns."""
        warn_of_chat_call("start_chat")
        self._chat = ChatHistory()
        if system_message:
            self._chat.append({"role": "system", "content": system_message})

    @one_at_a_time
    def finish_chat(self) -> None:
        """End and forget the conversation."""
        warn_of_chat_call("finish_chat")
        self._chat = None

    def _checked(self, config: GenerationConfig) -> GenerationConfig:
        """Return validated parameters, with the model's stop tokens if they have none.

        Raises:
            ConfigError: they contradict each other, or request adapters or parsers.
        """
        config = config.with_stops_of(self._config)
        config.validate()
        if config.adapters is not None:
            raise ConfigError("adapters: only LLMPipeline supports them; set them to None")
        if config.parsers:
            raise ConfigError("parsers: results have no messages; call parse with the texts")
        return config

    def _encode(
        self,
        prompt: str | ChatHistory | list[int],
        config: GenerationConfig,
        streamer: Streamer,
        prompts: int,
        began: Stopwatch,
    ) -> Request:
        """Return the request of one of several prompts.

        Raises:
            GenAIError: see ``generate``.
        """
        sink = sink_of_one_text(streamer, config, prompts)
        metrics = PerfMetrics(self._load_time)
        raw = metrics.raw_metrics
        if isinstance(prompt, str):
            ids = self._prompts.text(prompt, config, raw)
        elif isinstance(prompt, ChatHistory):
            _check_chat(prompt, config)
            ids = self._prompts.chat(prompt, raw)
        else:
            ids = prompt
        return self._request(None, ids, config, metrics, began, sink)

    def _request(
        self,
        number: int | None,
        ids: list[int],
        config: GenerationConfig,
        metrics: PerfMetrics,
        began: Stopwatch,
        sink: Sink,
    ) -> Request:
        limits = self._model.limits(ids, config, self._tokenizer.vocabulary_size)
        constraint = self._grammars.constraint(config, metrics)
        return Request(number, ids, config, limits, sink, metrics, began, constraint)

    def _run(self, requests: Sequence[Request]) -> None:
        """Run steps until requests have ended; if one fails, the others are cancelled.

        Raises:
            GenAIError: the error of a request.
        """
        streams = [one.stream for one in requests]
        self._scheduler.reset_metrics()
        try:
            for request in requests:
                self._scheduler.add(request)
            while any(one.status is GenerationStatus.RUNNING for one in streams):
                self._scheduler.step()
                for failed in (one.error for one in streams if one.error is not None):
                    raise failed
        finally:
            for one in streams:
                if one.status is GenerationStatus.RUNNING:
                    one.drop(GenerationStatus.CANCEL)
            self._scheduler.remove_dropped()


def _with_turn(chat: ChatHistory, texts: Sequence[Any]) -> ChatHistory:
    """Return a chat with a user's turn.

    Raises:
        PromptError: there are several texts.
    """
    if len(texts) != 1:
        raise PromptError(f"{len(texts)} texts in a chat: pass one text per turn")
    return ChatHistory([*chat.get_messages(), {"role": "user", "content": texts[0]}])


def _check_chat(chat: ChatHistory, config: GenerationConfig) -> None:
    """Check that a chat can be continued.

    Raises:
        ConfigError: no template is to be applied.
        PromptError: the chat has no messages.
    """
    if not config.apply_chat_template:
        raise ConfigError("apply_chat_template=False: a chat needs it; set it to True")
    if not chat:
        raise PromptError("the chat history is empty; append a message")
