"""Prompts of continuous batching, as the language model reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from genai_layer.batching.generate_call import Media
from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import PromptEncoder
from genai_layer.decoding.language_model import MakeInputs, token_inputs
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import PromptError
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.tokenizer import Tokenizer

Prompt = str | ChatHistory | list[int]
"""Text, chat or ids."""


def _forget() -> None:
    """Keep nothing of a prompt."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Prompt of one request."""

    ids: list[int]
    metrics: PerfMetrics
    """Metrics of the request, with the durations so far."""
    inputs: MakeInputs = token_inputs
    remember: Callable[[], None] = _forget
    """Keep what a chat's next prompt needs; to call if the generation was not cancelled."""


class Prompts(Protocol):
    """Maker of prompts; usable from any thread."""

    wraps_added: ClassVar[bool]
    """True if the chat template may wrap the texts of ``add_request``."""

    def prepare(
        self,
        prompt: Prompt,
        media: Media | None,
        template: bool,
        load_time: float,
        began: Stopwatch,
    ) -> Prepared:
        """Return a prompt.

        Args:
            prompt: a text, a chat or ids.
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
        tokenizer: the model's.
    """

    wraps_added: ClassVar[bool] = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._encoder = PromptEncoder(tokenizer)

    def prepare(
        self,
        prompt: Prompt,
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
        if isinstance(prompt, list):
            return Prepared(prompt, metrics)
        if isinstance(prompt, ChatHistory):
            return Prepared(self._encoder.chat(prompt, raw), metrics)
        return Prepared(self._encoder.text(prompt, template, raw), metrics)
