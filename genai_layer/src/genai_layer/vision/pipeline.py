"""Text generation from images and texts.

How it works. Each image becomes a run of tokens in the prompt, whose embeddings the vision encoder
computes; the embeddings of all others are looked up. The language model reads embeddings, and
generates as that of ``LLMPipeline`` does.

Source: openvino_genai.VLMPipeline, docs/reference/genai.md#vision-language-models; the README lists
deliberate differences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload
from weakref import WeakKeyDictionary

from genai_layer.chat_calls import warn_of_chat_call
from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import ChatPrompt, ChatPrompts
from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.language_model import LanguageModel
from genai_layer.decoding.methods import decode
from genai_layer.decoding.stopwatch import Stopwatch, TokenTimes
from genai_layer.decoding.task import Task
from genai_layer.errors import ConfigError, GenAIError, RuntimeFailure
from genai_layer.exclusive import Exclusive, one_at_a_time
from genai_layer.generation_config import GenerationConfig
from genai_layer.grammars.compiler import GrammarCompiler
from genai_layer.lora.adapter_config import AdapterConfig
from genai_layer.lora.compiled import compile_with
from genai_layer.lora.controller import control
from genai_layer.mechanisms import take_mechanisms
from genai_layer.model_folder import read_generation_config, read_tokenizer
from genai_layer.npu import StaticLengths, on_full_of
from genai_layer.prompt_limits import limits_of
from genai_layer.properties import read_properties, taken_adapters
from genai_layer.results_of import decoded_results
from genai_layer.runtime import Core, InferRequest, ReportsExecution
from genai_layer.runtimes import load_core
from genai_layer.sinks import Streamer, sink_of_one_text
from genai_layer.speculation.request import Speculation
from genai_layer.streamers import StreamingStatus
from genai_layer.text_generator import Call
from genai_layer.tokenizer import Tokenizer
from genai_layer.vision.conversation import Turn, mark, turns_of
from genai_layer.vision.encoder import EncodedImage
from genai_layer.vision.folder import VisionFolder
from genai_layer.vision.generate_call import read_call
from genai_layer.vision.image import ImageLike
from genai_layer.vision.perf_metrics import VLMPerfMetrics
from genai_layer.vision.prompt_embedder import PromptEmbedder
from genai_layer.vision.prompt_tags import fill_places
from genai_layer.vision.properties import split_properties
from genai_layer.vision.results import VLMDecodedResults, with_vision_metrics


class VLMPipeline(Exclusive):
    """Text generation with a vision-language model of the family Qwen2-VL.

    Args:
        models_path: a folder that optimum-cli exported with --task image-text-to-text.
        device: e.g. "NPU" or "CPU".
        core: a runtime, instead of the device's.
        adapters: LoRA adapters of the language model that generations may use, with their initial
            alphas.
        properties: properties of the pipeline (NPU: MAX_PROMPT_LEN, MIN_RESPONSE_LEN …) and, under
            OpenVINO's names, of the runtime. On NPU, the vision encoder is compiled for each size
            of images when it first occurs.

    Raises:
        ModelError: the folder lacks a file, one of its files is broken, or the model is of another
            family.
        PropertyError: a property or the device is unknown; or the device does not support adapters.
        AdapterError: an adapter belongs to another model, or its rank is too large.
        RuntimeFailure: the runtime cannot compile the models.
    """

    def __init__(
        self,
        models_path: str | bytes | os.PathLike[str],
        device: str,
        *,
        core: Core | None = None,
        adapters: AdapterConfig | None = None,
        **properties: Any,
    ) -> None:
        watch = Stopwatch()
        path = Path(os.fsdecode(models_path))
        adapters = taken_adapters(properties, adapters)
        Speculation.taken(properties).exclude("VLMPipeline")
        take_mechanisms(properties, device)
        language = others = read_properties(properties)
        folder = VisionFolder.read(path)
        self._tokenizer = read_tokenizer(path)
        self._prompts = ChatPrompts(self._tokenizer)
        self._grammars = GrammarCompiler(self._tokenizer)
        self._config = read_generation_config(path, self._tokenizer)
        self._vocabulary = self._tokenizer.vocabulary_size
        self._lengths: StaticLengths | None = None
        if device == "NPU":
            language, others, self._lengths = split_properties(language)
        core = load_core(device) if core is None else core
        self._embedder = PromptEmbedder(core, folder, self._tokenizer, device, others)
        try:
            compiled = compile_with(core, folder.language, device, language, adapters)
            self._request: InferRequest = compiled.create_infer_request()
            if self._lengths is not None:
                self._lengths = replace(self._lengths, on_full=on_full_of(compiled))
        except GenAIError:
            raise
        except RuntimeError as error:
            raise RuntimeFailure(str(error)) from error
        self._adapters = control(self._request, adapters, from_blob=False)
        self._config.adapters = adapters
        self._chat: ChatHistory | None = None
        self._turns = WeakKeyDictionary[ChatHistory, list[Turn]]()
        """Turns of each chat's last generation."""
        self._load_time = watch.microseconds() / 1000

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return self._tokenizer

    @one_at_a_time
    def set_chat_template(self, chat_template: str) -> None:
        """Replace the chat template.

        Raises:
            ConfigError: a chat has been started.
        """
        if self._chat is not None:
            raise ConfigError("set_chat_template: a chat has been started; call finish_chat first")
        self._tokenizer.set_chat_template(chat_template)

    def get_generation_config(self) -> GenerationConfig:
        """Return a copy of the default parameters."""
        return self._config.model_copy(deep=True)

    def set_generation_config(self, config: GenerationConfig) -> None:
        """Set the default parameters; missing stop tokens are taken from the previous ones.

        Raises:
            ConfigError: the parameters contradict each other; the previous ones stay.
        """
        self._config = _checked(config.with_stops_of(self._config))

    @overload
    def generate(
        self,
        prompt: str | ChatHistory,
        images: ImageLike | Sequence[ImageLike] | None = None,
        generation_config: GenerationConfig | None = None,
        streamer: Streamer = None,
        **kwargs: Any,
    ) -> VLMDecodedResults: ...
    @overload
    def generate(self, *args: Any, **kwargs: Any) -> VLMDecodedResults: ...

    @one_at_a_time
    def generate(self, *args: Any, **kwargs: Any) -> VLMDecodedResults:
        """Generate a text.

        Args:
            args: a text, or a ChatHistory (by name also ``history``), whose last user message has
                the images; one image or several; parameters, instead of the pipeline's; a streamer.
            kwargs: the same as ``prompt``, ``image`` or ``images``, ``generation_config`` and
                ``streamer``; and single parameters, which override the others.

        Raises:
            BusyError: the pipeline is generating, in another thread or outside a callback.
            ConfigError: parameters are unknown or contradict each other.
            PromptError: the prompt is empty or too long, an image is broken, images and tags do not
                match, or there are videos or audio.
            TemplateError: the chat template fails.
            RuntimeFailure: the runtime failed.
        """
        began = Stopwatch()
        call = read_call(args, kwargs)
        base = self._config if call.config is None else call.config
        config = _checked(base.with_stops_of(self._config).updated(call.parameters))
        generation = _Generation(config, call.streamer, began, VLMPerfMetrics(self._load_time))
        images = self._embedder.encode(call.images, generation.metrics.vlm_raw_metrics)
        if isinstance(call.prompt, ChatHistory):
            return self._generate_chat(call.prompt, images, generation)[0]
        if self._chat is not None:
            return self._generate_turn(call.prompt, images, generation)
        if not config.apply_chat_template:
            return self._generate_text(call.prompt, images, generation)
        alone = ChatHistory([{"role": "user", "content": call.prompt}])
        return self._generate_chat(alone, images, generation)[0]

    @one_at_a_time
    def start_chat(self, system_message: str = "") -> None:
        """Begin a conversation: prompts passed to ``generate`` become its turns."""
        warn_of_chat_call("start_chat")
        self._chat = ChatHistory()
        if system_message:
            self._chat.append({"role": "system", "content": system_message})

    @one_at_a_time
    def finish_chat(self) -> None:
        """End and forget the conversation."""
        warn_of_chat_call("finish_chat")
        self._chat = None

    def execution_report(self) -> Mapping[str, str]:
        """Return the runtime's facts on the last generation; empty if it reports none."""
        request = self._request
        return request.execution_report() if isinstance(request, ReportsExecution) else {}

    def _generate_turn(
        self, text: str, images: Sequence[EncodedImage], generation: _Generation
    ) -> VLMDecodedResults:
        """Generate in the started chat; a cancelled or failed turn is not added to it."""
        assert self._chat is not None  # the caller's condition
        attempt = ChatHistory([*self._chat.get_messages(), {"role": "user", "content": text}])
        self._turns[attempt] = self._turns.get(self._chat, [])
        results, status = self._generate_chat(attempt, images, generation)
        if status is not StreamingStatus.CANCEL:
            attempt.append({"role": "assistant", "content": results.texts[0]})
            self._chat = attempt
        return results

    def _generate_chat(
        self, history: ChatHistory, images: Sequence[EncodedImage], generation: _Generation
    ) -> tuple[VLMDecodedResults, StreamingStatus]:
        """Generate after a chat, whose images are remembered unless the turn is cancelled."""
        if not generation.config.apply_chat_template:
            raise ConfigError("apply_chat_template=False: a chat needs it; set it to True")
        turns = turns_of(history.get_messages(), self._turns.get(history, []), images)
        messages, ordered = mark(turns)
        marked = ChatHistory(messages)
        marked.set_tools(history.get_tools())
        marked.set_extra_context(history.get_extra_context())
        raw, watch = generation.metrics.raw_metrics, Stopwatch()
        prompt = self._prompts.render(marked)
        raw.chat_template_durations.append(watch.microseconds())
        watch = Stopwatch()
        ids = self._prompts.encode(fill_places(prompt, _tokens(ordered)))
        raw.tokenization_durations.append(watch.microseconds())
        sequences = self._run(ids, ordered, generation)
        status = sequences[0].status
        if status is not StreamingStatus.CANCEL:
            self._turns[history] = turns
        return _results(sequences, generation), status

    def _generate_text(
        self, text: str, images: Sequence[EncodedImage], generation: _Generation
    ) -> VLMDecodedResults:
        """Generate after a text without a chat template."""
        (message,), ordered = mark([Turn({"role": "user", "content": text}, tuple(images))])
        prompt = fill_places(ChatPrompt(message["content"], None), _tokens(ordered))
        watch = Stopwatch()
        ids: list[int] = self._tokenizer.encode(prompt.text).input_ids.data[0].tolist()
        generation.metrics.raw_metrics.tokenization_durations.append(watch.microseconds())
        return _results(self._run(ids, ordered, generation), generation)

    def _run(
        self, ids: list[int], images: Sequence[EncodedImage], generation: _Generation
    ) -> list[GeneratedSequence]:
        """Continue a prompt.

        Args:
            ids: the prompt.
            images: the images in the order of their places.
            generation: the call.
        """
        config, metrics, began = generation.config, generation.metrics, generation.began
        raw, vision = metrics.raw_metrics, metrics.vlm_raw_metrics
        limits = limits_of(ids, config, self._vocabulary, self._lengths)
        constraint = self._grammars.constraint(config, metrics)
        self._adapters.apply(config.adapters)
        inputs = self._embedder.embed(ids, images, vision)
        vision.prepare_embeddings_durations.append(began.microseconds())
        sequences = decode(
            Task(
                prompt=ids,
                config=config,
                limits=limits,
                model=LanguageModel(self._request, raw, inputs),
                decode=self._tokenizer.decode,
                sink=sink_of_one_text(generation.streamer, config, prompts=1),
                raw=raw,
                times=TokenTimes(raw, began),
                constraint=constraint,
            )
        )
        metrics.num_input_tokens += len(ids)
        metrics.num_generated_tokens = sum(raw.m_batch_sizes)
        raw.generate_durations.append(began.microseconds())
        return sequences


@dataclass(frozen=True, slots=True)
class _Generation:
    """One call of ``generate``."""

    config: GenerationConfig
    streamer: Streamer
    began: Stopwatch
    metrics: VLMPerfMetrics


def _checked(config: GenerationConfig) -> GenerationConfig:
    """Return validated parameters.

    Raises:
        ConfigError: they contradict each other, or a method is not supported.
    """
    config.validate()
    if config.pruning_ratio:
        raise ConfigError(
            f"pruning_ratio = {config.pruning_ratio}: image tokens are not pruned; set it to 0"
        )
    return config


def _tokens(images: Sequence[EncodedImage]) -> list[int]:
    return [len(image.embeddings) for image in images]


def _results(sequences: list[GeneratedSequence], generation: _Generation) -> VLMDecodedResults:
    config, streamer, metrics = generation.config, generation.streamer, generation.metrics
    call = Call(config, streamer, generation.began, metrics)
    return with_vision_metrics(decoded_results([sequences], call))
