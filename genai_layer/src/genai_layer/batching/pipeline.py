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
from genai_layer.batching.generate_call import Configs, PromptIds, Prompts, read_call
from genai_layer.batching.handle import GenerationHandle
from genai_layer.batching.metrics import PipelineMetrics
from genai_layer.batching.new_requests import NewRequests
from genai_layer.batching.results import (
    EncodedGenerationResult,
    GenerationResult,
    decoded_result,
    encoded_result,
)
from genai_layer.batching.scheduler import Scheduler
from genai_layer.batching.status import GenerationStatus
from genai_layer.chat_history import ChatHistory
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import BusyError, ConfigError
from genai_layer.exclusive import one_at_a_time
from genai_layer.generation_config import GenerationConfig
from genai_layer.model_folder import read_generation_config, read_tokenizer
from genai_layer.parsers.results import begin_parsing
from genai_layer.runtime import Core
from genai_layer.runtimes import load_core
from genai_layer.scheduler.config import SchedulerConfig
from genai_layer.sinks import Streamer, sink_of_one_text
from genai_layer.started_chat import KeepsChat, with_turn
from genai_layer.tokenizer import Tokenizer


class ContinuousBatchingPipeline(KeepsChat):
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
        self._config = read_generation_config(folder, self._tokenizer)
        core = load_core(given.device) if core is None else core
        model = compile_batched(core, folder, given.device, given.properties, given.scheduler)
        self._scheduler = Scheduler(model.places, self._tokenizer.decode)
        load_time = watch.microseconds() / 1000
        self._new = NewRequests(self._tokenizer, model, self._config, load_time)

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return self._tokenizer

    def get_config(self) -> GenerationConfig:
        """Return a copy of the model's default parameters."""
        return self._config.updated({})

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
            TypeError: an argument is missing, there are two prompts, or the number is no integer.
            ConfigError: parameters contradict each other, or the number is in use.
            PromptError: the prompt is empty or too long, or has an unknown id.
        """
        prompts = [one for one in (prompt, input_ids) if one is not None]
        if len(prompts) != 1 or generation_config is None:
            raise TypeError(
                "add_request: pass request_id, prompt or input_ids, and generation_config"
            )
        number = index(request_id)
        if number < 0:
            raise ConfigError(f"request_id = {number}: pass an integer of 0 or more")
        request = self._new.added(number, prompts[0], generation_config)
        self._scheduler.add(request)
        return GenerationHandle(request.stream)

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
            TypeError: prompts are missing, or given twice.
            BusyError: requests have not ended, or another thread generates.
            ConfigError: parameters contradict each other, or are not as many as prompts.
            PromptError: a prompt is empty or too long.
            TemplateError: the chat template fails.
            RuntimeFailure: the runtime failed.
        """
        began = Stopwatch()
        given = [one for one in (prompts, prompt, input_ids, histories) if one is not None]
        if len(given) != 1:
            raise TypeError("generate: pass one of prompts, prompt, input_ids and histories")
        inputs, configs = read_call(given[0], generation_config)
        if self._scheduler.busy:
            raise BusyError("generate: requests have not ended; run steps, or use add_request")
        chat = None
        texts = [one for one in inputs if isinstance(one, str)]
        if self._chat is not None and texts:
            chat = with_turn(self._chat, texts)
            inputs = [chat]
        requests = [
            self._new.generated(one, config, sink_of_one_text(streamer, config, len(inputs)), began)
            for one, config in zip(inputs, configs, strict=True)
        ]
        begin_parsing(streamer)
        self._scheduler.complete(requests)
        if isinstance(inputs[0], list):
            return [encoded_result(number, one) for number, one in enumerate(requests)]
        results = [decoded_result(number, one) for number, one in enumerate(requests)]
        if chat is not None and results[0].m_status is not GenerationStatus.CANCEL:
            chat.append({"role": "assistant", "content": results[0].m_generation_ids[0]})
            self._chat = chat
        return results
