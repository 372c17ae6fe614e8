"""Text generation from images, videos and texts.

How it works. Each image or video becomes a run of tokens in the prompt, whose embeddings the vision
encoder computes; the embeddings of all others are looked up. The language model reads embeddings,
and generates as that of ``LLMPipeline`` does.

Source: openvino_genai.VLMPipeline, docs/reference/genai.md#vision-language-models; the README lists
deliberate differences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, overload

from genai_layer.chat_history import ChatHistory
from genai_layer.checked import checked
from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import ConfigError
from genai_layer.exclusive import one_at_a_time, with_turn
from genai_layer.generation_config import GenerationConfig
from genai_layer.lora.adapter_config import AdapterConfig
from genai_layer.npu import StaticLengths
from genai_layer.prompt import Prompt
from genai_layer.properties import for_device, read_properties, take_mechanisms, taken_adapters
from genai_layer.runtime import Core
from genai_layer.runtimes import load_core
from genai_layer.sinks import Streamer
from genai_layer.speculation.request import Speculation
from genai_layer.streamers import StreamingStatus
from genai_layer.tensor import HasData
from genai_layer.text_generator import Call, Target, TextGenerator
from genai_layer.text_pipeline import TextPipeline, decoded_results
from genai_layer.tokenizer import Tokenizer
from genai_layer.vision.encoder import EncodedVisual
from genai_layer.vision.folder import VisionFolder
from genai_layer.vision.generate_call import read_call
from genai_layer.vision.model_source import read_arguments, split_properties
from genai_layer.vision.prompt_embedder import PromptEmbedder
from genai_layer.vision.prompts import VisionPrompt, VisionPrompts
from genai_layer.vision.results import VLMDecodedResults, VLMPerfMetrics
from genai_layer.vision.visuals import ImageLike, VideoLike

Generation = Call[VLMPerfMetrics]
"""One call of ``generate``."""


class VLMPipeline(TextPipeline):
    """Text generation with a vision-language model of the family Qwen2-VL.

    Args:
        models_path: a folder that optimum-cli exported with --task image-text-to-text.
        device: e.g. "NPU" or "CPU".
        models: instead of a folder, contents of ``openvino_<part>_model.xml`` and ``.bin``, a
            tensor u8 [n], by part: "language", "text_embeddings" …
        tokenizer: the Tokenizer of models in memory.
        config_dir_path: the folder of their config.json and preprocessor_config.json.
        generation_config: their default parameters.
        core: a runtime, instead of the device's.
        adapters: LoRA adapters of the language model that generations may use, with their initial
            alphas.
        properties: properties of the pipeline (NPU: MAX_PROMPT_LEN, MIN_RESPONSE_LEN …) and, under
            OpenVINO's names, of the runtime. On NPU, the vision encoder is compiled for each size
            of images when it first occurs.

    Raises:
        TypeError: an argument is missing.
        ModelError: a model or a file is missing, a file is broken, or the model is of another
            family.
        PropertyError: a property or the device is unknown; or the device does not support adapters.
        AdapterError: an adapter belongs to another model, or its rank is too large.
        RuntimeFailure: the runtime cannot compile the models.
    """

    @overload
    def __init__(
        self,
        models_path: str | bytes | os.PathLike[str],
        device: str,
        *,
        core: Core | None = None,
        adapters: AdapterConfig | None = None,
        **properties: Any,
    ) -> None: ...
    @overload
    def __init__(
        self,
        models: Mapping[str, tuple[str, HasData]],
        tokenizer: Tokenizer,
        config_dir_path: str | bytes | os.PathLike[str],
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
        device, source = given.device, given.source
        properties = for_device(given.properties, device)
        adapters = taken_adapters(properties, adapters)
        speculation, given_properties = Speculation.taken(properties), dict(properties)
        speculation.exclude_draft("VLMPipeline")
        take_mechanisms(properties, device)
        language = others = read_properties(properties)
        folder = VisionFolder.read(source.folder)
        self._tokenizer = given.tokenizer
        self._prompts = VisionPrompts(self._tokenizer)
        self._config = source.generation_config(self._tokenizer)
        lengths: StaticLengths | None = None
        if device == "NPU":
            step = speculation.step_tokens(self._config)
            language, others, lengths = split_properties(language, step)
        core = load_core(device) if core is None else core
        self._embedder = PromptEmbedder(core, source, folder, self._tokenizer, device, others)
        find = partial(source.model, core, "language")
        target = Target(core, device, language, lengths)
        candidates = speculation, given_properties
        self._generator = TextGenerator(find, target, adapters, self._tokenizer, *candidates)
        self._config.adapters = adapters
        self._load_time = watch.microseconds() / 1000

    @one_at_a_time
    @checked
    def set_chat_template(self, chat_template: str) -> None:
        """Replace the chat template.

        Raises:
            ConfigError: a chat has been started.
        """
        if self._chat is not None:
            raise ConfigError("set_chat_template: a chat has been started; call finish_chat first")
        self._tokenizer.set_chat_template(chat_template)

    @overload
    def generate(
        self,
        prompt: str | ChatHistory,
        images: ImageLike | Sequence[ImageLike] | None = None,
        videos: VideoLike | Sequence[VideoLike] | None = None,
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
                the images and videos; one image or several; one video or several; parameters,
                instead of the pipeline's; a streamer.
            kwargs: the same as ``prompt``, ``image`` or ``images``, ``videos``,
                ``generation_config`` and ``streamer``; ``videos_metadata``, which choose frames;
                and single parameters, which override the others.

        Raises:
            BusyError: the pipeline is generating, in another thread or outside a callback.
            ConfigError: parameters are unknown or contradict each other.
            PromptError: the prompt is empty or too long, an image or a video is broken, they
                and tags do not match, or there is audio.
            TemplateError: the chat template fails.
            RuntimeFailure: the runtime failed.
        """
        began = Stopwatch()
        call = read_call(args, kwargs)
        config = self._effective(call.config or self._config, call.parameters)
        generation = Call(config, call.streamer, began, VLMPerfMetrics(self._load_time))
        raw = generation.metrics.vlm_raw_metrics
        visuals = self._embedder.encode(call.images, call.videos, raw)
        if isinstance(call.prompt, ChatHistory):
            if not config.apply_chat_template:
                raise ConfigError("apply_chat_template=False: a chat needs it; set it to True")
            return self._generate_chat(call.prompt, visuals, generation)[0]
        if self._chat is not None:
            return self._generate_turn(self._chat, call.prompt, visuals, generation)
        self._forget_tokens()
        if not config.apply_chat_template:
            prompt = self._prompts.of_text(call.prompt, visuals, generation.metrics.raw_metrics)
            return _results(self._run(prompt, generation), generation)
        alone = ChatHistory([{"role": "user", "content": call.prompt}])
        return self._generate_chat(alone, visuals, generation)[0]

    def _effective(self, config: GenerationConfig, changes: Mapping[str, Any]) -> GenerationConfig:
        """Return validated parameters; see ``TextPipeline``."""
        effective = super()._effective(config, changes)
        if effective.pruning_ratio:
            raise ConfigError(
                f"pruning_ratio = {effective.pruning_ratio}: image tokens are not pruned; set it "
                "to 0"
            )
        return effective

    def _generate_turn(
        self,
        chat: ChatHistory,
        text: str,
        visuals: Sequence[EncodedVisual],
        generation: Generation,
    ) -> VLMDecodedResults:
        """Generate in the started chat; a cancelled or failed turn is not added to it."""
        attempt = with_turn(chat, [text])
        self._prompts.continue_chat(chat, attempt)
        results, status = self._generate_chat(attempt, visuals, generation)
        if status is not StreamingStatus.CANCEL:
            attempt.append({"role": "assistant", "content": results.texts[0]})
            self._chat = attempt
        return results

    def _generate_chat(
        self, history: ChatHistory, visuals: Sequence[EncodedVisual], generation: Generation
    ) -> tuple[VLMDecodedResults, StreamingStatus]:
        """Generate after a chat, whose visuals are remembered unless the turn is cancelled."""
        prompt = self._prompts.of_chat(history, visuals, generation.metrics.raw_metrics)
        sequences = self._run(prompt, generation)
        status = sequences[0].status
        if status is not StreamingStatus.CANCEL:
            self._prompts.remember(history, prompt)
        return _results(sequences, generation), status

    def _run(self, prompt: VisionPrompt, generation: Generation) -> list[GeneratedSequence]:
        """Continue a prompt."""
        inputs = self._embedder.inputs(prompt, generation.metrics, generation.began)
        (sequences,) = self._generator.run([Prompt(prompt.ids)], generation, inputs, continues=True)
        return sequences


def _results(sequences: list[GeneratedSequence], generation: Generation) -> VLMDecodedResults:
    return decoded_results([sequences], generation, VLMDecodedResults)
