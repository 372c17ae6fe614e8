"""Requests made of prompts and parameters, which are checked before.

Prompts of continuous batching are made as the language model reads them.

Source: docs/reference/genai.md#continuous-batching.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

from genai_layer.batching.compiled import BatchedModel
from genai_layer.batching.generate_call import Media, PromptIds, ids_of
from genai_layer.batching.request import Request
from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import PromptEncoder
from genai_layer.decoding.language_model import TOKENS, Inputs
from genai_layer.decoding.reads import Sink
from genai_layer.decoding.scored_prompt import PromptScores
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import ConfigError, PromptError
from genai_layer.generation_config import GenerationConfig
from genai_layer.grammars.compiler import GrammarCompiler
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.prompt import Prompt
from genai_layer.sinks import NoSink
from genai_layer.speculation.request import Assistant
from genai_layer.tokenizer import Tokenizer

Given = str | ChatHistory | Prompt
"""Text, chat, or a prompt that is encoded."""


def _forget() -> None:
    """Keep nothing of a prompt."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Prompt of one request."""

    prompt: Prompt
    metrics: PerfMetrics
    """Metrics of the request, with the durations so far."""
    inputs: Inputs = TOKENS
    remember: Callable[[], None] = _forget
    """Keep what a chat's next prompt needs; to call if the generation was not cancelled."""


class Prompts(Protocol):
    """Maker of prompts; usable from any thread."""

    wraps_added: ClassVar[bool]
    """True if the chat template may wrap the texts of ``add_request``."""

    def prepare(
        self,
        prompt: Given,
        media: Media | None,
        template: bool,
        load_time: float,
        began: Stopwatch,
    ) -> Prepared:
        """Return a prompt.

        Args:
            prompt: a text, a chat or a prompt.
            media: images and videos of the text, or of the chat's last user message; None if
                there are no lists of them.
            template: whether the chat template wraps a text, if the model has one.
            load_time: of the pipeline, in milliseconds, for the metrics.
            began: start of the call.

        Raises:
            PromptError: the model cannot read such a prompt.
            TemplateError: the chat template fails.
        """
        ...


class TokenPrompts:
    """Prompts of a model that reads token ids; ``Prompts``.

    Args:
        encoder: the model's.
    """

    wraps_added: ClassVar[bool] = False

    def __init__(self, encoder: PromptEncoder) -> None:
        self._encoder = encoder

    def prepare(
        self,
        prompt: Given,
        media: Media | None,
        template: bool,
        load_time: float,
        began: Stopwatch,
    ) -> Prepared:
        """Return the prompt's ids; see ``Prompts.prepare``."""
        if media is not None:
            raise PromptError(
                "images and videos: the model reads texts only; leave them out, or use a Qwen2-VL"
            )
        metrics = PerfMetrics(load_time)
        raw = metrics.raw_metrics
        if isinstance(prompt, Prompt):
            return Prepared(prompt, metrics)
        if isinstance(prompt, ChatHistory):
            return Prepared(self._encoder.chat(prompt, raw), metrics)
        return Prepared(self._encoder.text(prompt, template, raw), metrics)


class NewRequests:
    """Maker of a pipeline's requests; usable from any thread.

    Args:
        tokenizer: the model's.
        prompts: maker of the prompts.
        model: has the limits of prompts and answers.
        defaults: parameters that have the model's stop tokens.
        load_time: of the pipeline, in milliseconds, for the metrics.
        assistant: source of candidates.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompts: Prompts,
        model: BatchedModel,
        defaults: GenerationConfig,
        load_time: float,
        assistant: Assistant | None = None,
    ) -> None:
        self._prompts = prompts
        self._grammars = GrammarCompiler(tokenizer)
        self._vocabulary = tokenizer.vocabulary_size
        self._model = model
        self._defaults = defaults
        self._load_time = load_time
        self._assistant = assistant

    def added(
        self,
        number: int,
        prompt: str | Prompt | PromptIds,
        config: GenerationConfig,
        media: Media | None,
    ) -> Request:
        """Return the request of ``add_request``.

        Raises:
            ConfigError: parameters contradict each other, or are not supported.
            PromptError: the prompt is empty or too long, or has an unknown id.
        """
        began = Stopwatch()
        config = self._checked(config)
        given = prompt if isinstance(prompt, str | Prompt) else Prompt(ids_of(prompt))
        template = self._prompts.wraps_added and config.apply_chat_template
        prepared = self._prompts.prepare(given, media, template, self._load_time, began)
        scores = _new_scores(prepared) if config.echo else None
        config = config.updated({"echo": False})  # the scores have the prompt's tokens
        request = self._request(number, prepared, config, began, NoSink())
        request.scores = scores
        return request

    def generated(
        self,
        prompt: Given,
        media: Media | None,
        config: GenerationConfig,
        sink: Sink,
        began: Stopwatch,
    ) -> tuple[Request, Prepared]:
        """Return the request of one of the prompts of ``generate``, and the prompt.

        Raises:
            ConfigError: parameters contradict each other, or are not supported.
            PromptError: the prompt is empty or too long, or has an unknown id.
            TemplateError: the chat template fails.
        """
        config = self._checked(config)
        if isinstance(prompt, ChatHistory):
            _check_chat(prompt, config)
        template = config.apply_chat_template
        prepared = self._prompts.prepare(prompt, media, template, self._load_time, began)
        return self._request(None, prepared, config, began, sink), prepared

    def _checked(self, config: GenerationConfig) -> GenerationConfig:
        """Return validated parameters, with the model's stop tokens if they have none."""
        config = config.with_stops_of(self._defaults)
        config.validate()
        if config.adapters is not None:
            raise ConfigError(
                "adapters: only LLMPipeline and VLMPipeline support them; set them to None"
            )
        if config.parsers:
            raise ConfigError("parsers: results have no messages; call parse with the texts")
        return config

    def _request(
        self,
        number: int | None,
        prompt: Prepared,
        config: GenerationConfig,
        began: Stopwatch,
        sink: Sink,
    ) -> Request:
        fit, metrics = self._model.fitted(prompt.prompt), prompt.metrics
        ids = fit.ids
        limits = self._model.limits(ids, config, self._vocabulary)
        constraint = self._grammars.constraint(config, metrics)
        request = Request(number, ids, config, limits, sink, metrics, began, prompt.inputs)
        request.constraint = constraint
        request.truncation = self._model.truncation(fit, config)
        request.warn = fit.warn
        if self._assistant is not None:
            request.drafter = partial(self._assistant.drafter, ids, config)
        return request


def _new_scores(prompt: Prepared) -> PromptScores:
    """Return scores of a prompt to fill.

    Raises:
        ConfigError: the model reads images, whose prompts it cannot read token by token.
    """
    if prompt.inputs is not TOKENS:
        raise ConfigError(
            "echo: a model of images computes no log-probabilities of prompts; set echo to False"
        )
    return PromptScores()


def _check_chat(chat: ChatHistory, config: GenerationConfig) -> None:
    if not config.apply_chat_template:
        raise ConfigError("apply_chat_template=False: a chat needs it; set it to True")
    if not chat:
        raise PromptError("the chat history is empty; append a message")
