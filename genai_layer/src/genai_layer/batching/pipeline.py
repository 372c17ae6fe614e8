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
from genai_layer.batching.generate_call import (
    Configs,
    Media,
    PromptIds,
    read_call,
    read_request,
)
from genai_layer.batching.new_requests import NewRequests, Prompts, TokenPrompts
from genai_layer.batching.observer import PipelineObserver
from genai_layer.batching.request import GenerationHandle, GenerationStatus
from genai_layer.batching.results import (
    EncodedGenerationResult,
    GenerationResult,
    decoded_result,
    encoded_result,
    visual_result,
)
from genai_layer.batching.scheduler import PipelineMetrics, Scheduler
from genai_layer.batching.vision import has_vision, open_vision
from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import PromptEncoder
from genai_layer.checked import checked
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.detokenizer import TextDecoder
from genai_layer.errors import BusyError, ConfigError
from genai_layer.exclusive import KeepsChat, one_at_a_time, with_turn
from genai_layer.generation_config import GenerationConfig
from genai_layer.model_folder import read_generation_config, read_tokenizer
from genai_layer.model_kinds import check_reader
from genai_layer.npu import StaticLengths, imports_blob
from genai_layer.observation import ObservesBatching
from genai_layer.parsers.streamer import begin_parsing
from genai_layer.prompt import Prompt
from genai_layer.runtime import Core
from genai_layer.runtimes import load_core
from genai_layer.scheduler import SchedulerConfig
from genai_layer.sinks import Streamer, sink_of_one_text
from genai_layer.speculation.draft_model import Place
from genai_layer.tokenizer import Tokenizer
from genai_layer.vision.results import VLMDecodedResults
from genai_layer.vision.visuals import ImageLike, VideoLike


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

    @checked
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
        check_reader(folder, "ContinuousBatchingPipeline")
        self._tokenizer = given.tokenizer or read_tokenizer(folder)
        self._config = read_generation_config(folder, self._tokenizer)
        core = load_core(given.device) if core is None else core
        target = core, folder, given.device, given.properties, given.scheduler
        speculation, assistant = given.speculation, None
        prompts: Prompts
        if has_vision(folder):
            speculation.exclude_images()
            model, prompts = open_vision(*target, self._tokenizer)
        else:
            speculation.check_source(given.device == "NPU" and imports_blob(given.properties))
            model = compile_batched(*target, speculation.step_tokens(self._config))
            prompts = TokenPrompts(PromptEncoder(self._tokenizer, model.lengths))
            place = Place(given.device, given.properties, core, self._tokenizer)
            assistant = speculation.open(place, model.lengths, shared=False)
        self._model = model
        self._scheduler = Scheduler(model.places, TextDecoder(self._tokenizer))
        load_time = watch.microseconds() / 1000
        defaults = self._config
        self._new = NewRequests(self._tokenizer, prompts, model, defaults, load_time, assistant)

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return self._tokenizer

    def get_config(self) -> GenerationConfig:
        """Return a copy of the model's default parameters."""
        return self._config.updated({})

    def get_max_sequences(self) -> int:
        """Return the maximum number of sequences that run at a time. Ours."""
        return self._model.places.count

    def get_lengths(self) -> StaticLengths | None:
        """Return the lengths of an NPU's programs; None on other devices. Ours."""
        return self._model.lengths

    def get_metrics(self) -> PipelineMetrics:
        """Return the metrics of the last step."""
        return self._scheduler.metrics

    def get_observer(self) -> PipelineObserver | None:
        """Return a view of the pipeline; None if the runtime is not observable. Ours."""
        places = self._model.places
        if not isinstance(places.batching, ObservesBatching):
            return None
        return PipelineObserver(places.batching, places.compiled, self._scheduler)

    @overload
    def add_request(
        self, request_id: int, prompt: str | PromptIds, generation_config: GenerationConfig
    ) -> GenerationHandle: ...
    @overload
    def add_request(
        self,
        request_id: int,
        prompt: str,
        images: Sequence[ImageLike],
        videos: Sequence[VideoLike],
        generation_config: GenerationConfig,
        **kwargs: Any,
    ) -> GenerationHandle: ...
    @overload
    def add_request(self, request_id: int, *args: Any, **named: Any) -> GenerationHandle: ...

    @checked
    def add_request(self, request_id: int, *args: Any, **named: Any) -> GenerationHandle:
        """Add a prompt; later steps generate from it.

        Args:
            request_id: a number that no request has that waits or runs.
            args: a text, to which only a model of images applies its chat template, or ids i64 [n]
                or [1, n]; lists of images and of videos, which may be left out; parameters, whose
                missing stop tokens are the model's.
            named: the same as ``prompt`` or ``input_ids``, ``images``, ``videos`` and
                ``generation_config``; ``videos_metadata``.

        Raises:
            TypeError: an argument is missing or unknown, there are two prompts, or the number is no
                integer.
            ConfigError: parameters contradict each other, or the number is in use.
            PromptError: the prompt is empty or too long, or has an unknown id; or it does not
                match the images and videos.
        """
        prompt, config, media = read_request(args, named)
        number = index(request_id)
        if number < 0:
            raise ConfigError(f"request_id = {number}: pass an integer of 0 or more")
        return self.add_prompt(number, prompt, config, media)[0]

    @checked
    def add_prompt(
        self,
        number: int,
        prompt: str | Prompt | PromptIds,
        config: GenerationConfig,
        media: Media | None = None,
    ) -> tuple[GenerationHandle, int]:
        """Add a prompt; return its handle, and the tokens that are read of it. Ours.

        Raises:
            ConfigError, PromptError: see ``add_request``.
            TemplateError: the chat template rejects a chat without its oldest turns.
        """
        request = self._new.added(number, prompt, config, media)
        self._scheduler.add(request)
        return GenerationHandle(request.stream), len(request.prompt)

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
        self,
        prompts: Sequence[str] | Sequence[ChatHistory],
        images: Sequence[Sequence[ImageLike]],
        videos: Sequence[Sequence[VideoLike]],
        generation_config: Sequence[GenerationConfig],
        streamer: Streamer = None,
        **kwargs: Any,
    ) -> list[VLMDecodedResults]: ...
    @overload
    def generate(self, *args: Any, **named: Any) -> list[Any]: ...

    @one_at_a_time
    def generate(self, *args: Any, **named: Any) -> list[Any]:
        """Generate from all prompts side by side.

        Args:
            args: texts, histories, or the ids of each prompt; or one text. For each prompt, a list
                of images and a list of videos, which may be left out. Parameters of each prompt, or
                of the one text. A streamer, which receives the text of a single prompt; see
                ``LLMPipeline.generate``.
            named: the same as ``prompts``, ``prompt``, ``input_ids`` or ``histories``, ``images``,
                ``videos``, ``generation_config``, ``streamer``; ``videos_metadata``.

        Returns:
            A GenerationResult for each prompt; of ids, an EncodedGenerationResult; with lists of
            images or videos, VLMDecodedResults.

        Raises:
            TypeError: prompts are missing, or given twice.
            BusyError: requests have not ended, or another thread generates.
            ConfigError: parameters contradict each other, or are not as many as prompts.
            PromptError: a prompt is empty or too long, or does not match its images and videos.
            TemplateError: the chat template fails.
            RuntimeFailure: the runtime failed.
        """
        began = Stopwatch()
        call = read_call(args, named)
        inputs = call.prompts
        if self._scheduler.busy:
            raise BusyError("generate: requests have not ended; run steps, or use add_request")
        chat = None
        texts = [one for one in inputs if isinstance(one, str)]
        if self._chat is not None and texts:
            if call.media[0] is not None:
                raise ConfigError("start_chat: images need a ChatHistory; pass one to generate")
            chat = with_turn(self._chat, texts)
            inputs = [chat]
        new = [
            self._new.generated(
                Prompt(one) if isinstance(one, list) else one,
                media,
                config,
                sink_of_one_text(call.streamer, config, len(inputs)),
                began,
            )
            for one, media, config in zip(inputs, call.media, call.configs, strict=True)
        ]
        requests = [request for request, _ in new]
        begin_parsing(call.streamer)
        self._scheduler.complete(requests)
        for request, prompt in new:
            if request.stream.status is not GenerationStatus.CANCEL:
                prompt.remember()
        if isinstance(inputs[0], list):
            return [encoded_result(number, one) for number, one in enumerate(requests)]
        if call.media[0] is not None:
            return [visual_result(one) for one in requests]
        results = [decoded_result(number, one) for number, one in enumerate(requests)]
        if chat is not None and results[0].m_status is not GenerationStatus.CANCEL:
            chat.append({"role": "assistant", "content": results[0].m_generation_ids[0]})
            self._chat = chat
        return results
