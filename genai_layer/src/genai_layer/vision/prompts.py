"""Prompts with images and videos: from a chat or a text to token ids, and visuals in their order.

Source: docs/reference/genai.md#images-in-a-chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import ChatPrompt, ChatPrompts
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.tokenizer import Tokenizer
from genai_layer.vision.conversation import Turn, mark, turns_of
from genai_layer.vision.encoder import EncodedVisual
from genai_layer.vision.prompt_tags import Kind, fill_places


@dataclass(frozen=True, slots=True)
class VisionPrompt:
    """Prompt of one generation."""

    ids: list[int]
    visuals: list[EncodedVisual]
    """The images and videos in the order of their places."""
    turns: list[Turn]
    """The chat's messages with their visuals."""


class VisionPrompts:
    """Prompts of a pipeline; chats that are remembered keep their visuals.

    Args:
        tokenizer: has the chat template.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._prompts = ChatPrompts(tokenizer)
        self._turns = WeakKeyDictionary[ChatHistory, list[Turn]]()
        """Turns of each chat's last generation."""

    def of_chat(
        self, history: ChatHistory, visuals: Sequence[EncodedVisual], raw: RawPerfMetrics
    ) -> VisionPrompt:
        """Return the prompt of a chat.

        Args:
            history: the chat.
            visuals: the images and videos of its last user message.
            raw: collects the measurements.

        Raises:
            PromptError: visuals and tags do not match, or a message is not supported.
            TemplateError: the chat template fails.
        """
        turns = turns_of(history.get_messages(), self._turns.get(history, []), visuals)
        messages, ordered = mark(turns)
        marked = ChatHistory(messages)
        marked.set_tools(history.get_tools())
        marked.set_extra_context(history.get_extra_context())
        watch = Stopwatch()
        prompt = self._prompts.render(marked)
        raw.chat_template_durations.append(watch.microseconds())
        watch = Stopwatch()
        ids = self._prompts.encode(fill_places(prompt, _places(ordered)))
        raw.tokenization_durations.append(watch.microseconds())
        return VisionPrompt(ids, ordered, turns)

    def of_text(
        self, text: str, visuals: Sequence[EncodedVisual], raw: RawPerfMetrics
    ) -> VisionPrompt:
        """Return the prompt of a text without a chat template; arguments as for ``of_chat``.

        Raises:
            PromptError: visuals and tags do not match.
        """
        turns = [Turn({"role": "user", "content": text}, tuple(visuals))]
        (message,), ordered = mark(turns)
        prompt = fill_places(ChatPrompt(message["content"], None), _places(ordered))
        watch = Stopwatch()
        ids: list[int] = self._tokenizer.encode(prompt.text).input_ids.data[0].tolist()
        raw.tokenization_durations.append(watch.microseconds())
        return VisionPrompt(ids, ordered, turns)

    def remember(self, history: ChatHistory, prompt: VisionPrompt) -> None:
        """Keep the visuals of a chat while its messages stay the same."""
        self._turns[history] = prompt.turns

    def continue_chat(self, history: ChatHistory, longer: ChatHistory) -> None:
        """Keep the visuals of a chat for another that begins with its messages."""
        self._turns[longer] = self._turns.get(history, [])


def _places(visuals: Sequence[EncodedVisual]) -> list[tuple[Kind, int]]:
    return [(visual.kind, visual.grid.count) for visual in visuals]
