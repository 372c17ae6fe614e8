"""Text generation pipeline.

Source: openvino_genai.LLMPipeline, docs/reference/genai.md#construction,
docs/reference/genai.md#results, docs/reference/genai.md#chat-history,
docs/reference/genai.md#npu-pipeline, docs/reference/genai.md#npu-options; the README lists
deliberate differences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, overload

from genai_layer.arguments import read_arguments
from genai_layer.batching.compiled import scheduler_options
from genai_layer.batching.side_by_side import open_slots
from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import PromptEncoder
from genai_layer.checked import checked
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import ConfigError, PromptError
from genai_layer.exclusive import one_at_a_time, with_turn
from genai_layer.generation_config import GenerationConfig
from genai_layer.lora.adapter_config import AdapterConfig
from genai_layer.npu import StaticLengths, imports_blob, npu_properties
from genai_layer.parsers.streamer import begin_parsing
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.prompt import Prompt
from genai_layer.properties import for_device, read_properties, take_mechanisms, taken_adapters
from genai_layer.results import DecodedResults, EncodedResults
from genai_layer.runtime import Core
from genai_layer.runtimes import load_core
from genai_layer.sinks import Streamer
from genai_layer.speculation.request import Speculation
from genai_layer.streamers import StreamingStatus
from genai_layer.tensor import HasData
from genai_layer.text_generator import Call, Target, TextGenerator
from genai_layer.text_pipeline import TextPipeline, decoded_results, encoded_results
from genai_layer.token_ids import Ids, is_ids, prompts_ids, texts_of
from genai_layer.tokenizer import Tokenizer

Inputs = str | list[str] | ChatHistory | Ids


class LLMPipeline(TextPipeline):
    """Text generation with a language model.

    Args:
        models_path: a folder with ``openvino_model.xml``, or a Hugging Face folder; either with
            ``tokenizer.json``.
        tokenizer: a Tokenizer; None, or the device in its place, for the folder's own.
        device: e.g. "NPU" or "CPU".
        config: properties as a dictionary; deprecated, as in openvino_genai.
        model: content of an ``openvino_model.xml``, instead of a folder; with a Tokenizer.
        weights: content of the ``openvino_model.bin``, a tensor u8 [n].
        generation_config: default parameters of a model in memory.
        core: a runtime, instead of the device's.
        adapters: LoRA adapters that generations may use, with their initial alphas.
        properties: properties of the pipeline (NPU: MAX_PROMPT_LEN, MIN_RESPONSE_LEN …) and, under
            OpenVINO's names, of the runtime. On NPU, BLOB_PATH loads a compiled model with the
            lengths that it was compiled for; with EXPORT_BLOB, the compiled model is written there.
            On NPU, scheduler_config sets how many texts of a call are generated side by side.

    Raises:
        TypeError: an argument is missing.
        ModelError: the folder lacks a file, or one of its files is broken.
        PropertyError: a property or the device is unknown; or the device does not support adapters.
        AdapterError: an adapter belongs to another model, or its rank is too large.
        RuntimeFailure: the runtime cannot compile the model.
    """

    @overload
    def __init__(
        self,
        models_path: str | bytes | os.PathLike[str],
        device: str,
        config: Mapping[str, Any] | None = None,
        *,
        core: Core | None = None,
        adapters: AdapterConfig | None = None,
        **properties: Any,
    ) -> None: ...
    @overload
    def __init__(
        self,
        models_path: str | bytes | os.PathLike[str],
        tokenizer: Tokenizer | None,
        device: str,
        config: Mapping[str, Any] | None = None,
        *,
        core: Core | None = None,
        adapters: AdapterConfig | None = None,
        **properties: Any,
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: str,
        weights: HasData,
        tokenizer: Tokenizer,
        device: str,
        generation_config: GenerationConfig | None = None,
        *,
        core: Core | None = None,
        adapters: AdapterConfig | None = None,
        **properties: Any,
    ) -> None: ...

    @checked
    def __init__(
        self,
        *args: Any,
        core: Core | None = None,
        adapters: AdapterConfig | None = None,
        **named: Any,
    ) -> None:
        watch = Stopwatch()
        given = read_arguments(args, named)
        device = given.device
        properties = for_device(given.properties, device)
        tokenizer = given.tokenizer
        adapters = taken_adapters(properties, adapters)
        speculation, given_properties = Speculation.taken(properties), dict(properties)
        scheduler = properties.get("scheduler_config")
        take_mechanisms(properties, device)
        properties = read_properties(properties)
        # A blob may contain the complete model.
        imported = device == "NPU" and imports_blob(properties)
        speculation.check_source(imported)
        self._tokenizer = tokenizer
        self._config = given.source.generation_config(tokenizer)
        lengths: StaticLengths | None = None
        wishes: dict[str, Any] = {}
        if device == "NPU":
            step = speculation.step_tokens(self._config)
            if scheduler is not None and not imported:
                wishes = scheduler_options(scheduler, step)
            properties, lengths = npu_properties(properties, step)
        core = load_core(device) if core is None else core
        target = Target(core, device, properties, lengths, imported, open_slots, wishes)
        find = partial(given.source.model, core, needed=not imported)
        source = speculation, given_properties
        self._generator = TextGenerator(find, target, adapters, tokenizer, *source)
        self._prompts = PromptEncoder(tokenizer, self._generator.lengths)
        self._config.adapters = adapters
        self._load_time = watch.microseconds() / 1000

    @overload
    def generate(
        self,
        inputs: str,
        generation_config: GenerationConfig | None = None,
        streamer: Streamer = None,
        **kwargs: Any,
    ) -> str: ...
    @overload
    def generate(
        self,
        inputs: Ids,
        generation_config: GenerationConfig | None = None,
        streamer: Streamer = None,
        **kwargs: Any,
    ) -> EncodedResults: ...
    @overload
    def generate(
        self,
        inputs: list[str] | ChatHistory,
        generation_config: GenerationConfig | None = None,
        streamer: Streamer = None,
        **kwargs: Any,
    ) -> DecodedResults: ...

    @one_at_a_time
    @checked
    def generate(
        self,
        inputs: Inputs,
        generation_config: GenerationConfig | None = None,
        streamer: Streamer = None,
        **kwargs: Any,
    ) -> str | DecodedResults | EncodedResults:
        """Generate a text.

        Args:
            inputs: a text; a list of texts; a ChatHistory; or token ids i64 [prompts, n]:
                TokenizedInputs, a tensor, an array or lists. Prompts are continued side by side in
                the model's slots (``scheduler_config``, NPUW_LLM_BATCH_SLOTS), otherwise one after
                the other.
            generation_config: parameters, instead of the pipeline's.
            streamer: receives the text as it is generated: a callable, or a StreamerBase. It needs
                one prompt and one sequence, and no beam search.
            kwargs: single parameters, which override the others.

        Returns:
            The text for a text if one sequence is returned; else DecodedResults, or EncodedResults
            for ids. Sequences of a prompt follow one another, highest score first.

        Raises:
            BusyError: the pipeline is generating, in another thread or outside a callback.
            ConfigError: parameters are unknown or contradict each other.
            PromptError: the prompt is empty or too long.
            TemplateError: the chat template fails.
            RuntimeFailure: the runtime failed.
        """
        began = Stopwatch()
        config = self._effective(generation_config or self._config, kwargs)
        begin_parsing(streamer)
        call = Call(config, streamer, began, PerfMetrics(self._load_time))
        if is_ids(inputs):
            if self._chat is not None:
                raise PromptError("token ids in a chat: pass texts, or call finish_chat() first")
            generated = self._generator.run([Prompt(ids) for ids in prompts_ids(inputs)], call)
            return encoded_results(generated, call.metrics)
        if isinstance(inputs, ChatHistory):
            if not inputs:
                raise PromptError("the chat history is empty; append a message")
            if not config.apply_chat_template:
                raise ConfigError("apply_chat_template=False: a chat needs it; set it to True")
            return self._generate_chat(inputs, call)[0]
        texts = texts_of(inputs)
        if self._chat is None:
            raw = call.metrics.raw_metrics
            prompts = [self._prompts.text(text, config.apply_chat_template, raw) for text in texts]
            results = decoded_results(self._generator.run(prompts, call), call)
        else:
            results = self._generate_turn(self._chat, texts, call)
        alone = isinstance(inputs, str) and config.num_return_sequences == 1
        return results.texts[0] if alone else results

    __call__ = generate

    def _generate_chat(
        self, history: ChatHistory, call: Call[PerfMetrics]
    ) -> tuple[DecodedResults, StreamingStatus]:
        prompt = self._prompts.chat(history, call.metrics.raw_metrics)
        (sequences,) = generated = self._generator.run([prompt], call, continues=True)
        return decoded_results(generated, call), sequences[0].status

    def _generate_turn(
        self, chat: ChatHistory, texts: list[str], call: Call[PerfMetrics]
    ) -> DecodedResults:
        """Generate in the started chat; a cancelled or failed turn is not added to it."""
        attempt = with_turn(chat, texts)
        results, status = self._generate_chat(attempt, call)
        if status is not StreamingStatus.CANCEL:
            attempt.append({"role": "assistant", "content": results.texts[0]})
            self._chat = attempt
        return results
