"""Prompts with images and videos: from a chat or a text to token ids, and visuals in their order.

Visuals belong to the user message that they were passed with, and stay with it in later turns.

Source: docs/reference/genai.md#images-in-a-chat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from weakref import WeakKeyDictionary

from genai_layer.chat_history import ChatHistory, Message
from genai_layer.chat_prompt import ChatPrompt, ChatPrompts
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import PromptError
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.tokenizer import Tokenizer
from genai_layer.vision.encoder import EncodedVisual
from genai_layer.vision.prompt_tags import KINDS, Kind, fill_places, mark_places, marks_of


@dataclass(frozen=True, slots=True)
class Turn:
    """Message and its visuals."""

    message: Message
    visuals: tuple[EncodedVisual, ...] = ()


def turns_of(
    messages: Sequence[Message], earlier: Sequence[Turn], visuals: Sequence[EncodedVisual]
) -> list[Turn]:
    """Return the turns of a chat.

    Args:
        messages: the chat.
        earlier: turns of the last generation; they keep their visuals up to the first change.
        visuals: those of this generation, which belong to the last user message.

    Raises:
        PromptError: there is no user message.
    """
    turns = [Turn(message) for message in messages]
    for place, (old, message) in enumerate(zip(earlier, messages, strict=False)):
        if old.message != message:
            break
        turns[place] = old
    asking = [place for place, message in enumerate(messages) if _is_user(message)]
    if not asking:
        raise PromptError("the chat has no message with the role user; append one")
    if visuals:
        turns[asking[-1]] = replace(turns[asking[-1]], visuals=tuple(visuals))
    return turns


def mark(turns: Sequence[Turn]) -> tuple[list[Message], list[EncodedVisual]]:
    """Return messages with marks of their visuals, and the visuals in the order of marks.

    Raises:
        PromptError: tags and visuals of a message do not match, or its content is not supported.
    """
    messages: list[Message] = []
    ordered: list[EncodedVisual] = []
    earlier = dict.fromkeys(KINDS, 0)
    for turn in turns:
        message = turn.message
        if _is_user(message):
            text = _text(message.get("content"), earlier)
            placed: dict[Kind, Iterator[EncodedVisual]] = {}
            for kind in KINDS:
                given = [visual for visual in turn.visuals if visual.kind is kind]
                marked = mark_places(text, kind, len(given), earlier[kind])
                text, placed[kind] = marked.text, iter([given[place] for place in marked.order])
                earlier[kind] += len(given)
            ordered += [next(placed[kind]) for kind in marks_of(text)]
            message = {**message, "content": text}
        messages.append(message)
    return messages, ordered


def _is_user(message: Message) -> bool:
    return message.get("role") == "user"


def _text(content: object, earlier: Mapping[Kind, int]) -> str:
    """Return the text of a message, with tags for its parts that are visuals.

    Args:
        content: a text, or a list of parts {"type": "text", "text": …}, {"type": "image"} and
            {"type": "video"}.
        earlier: number of visuals in earlier messages.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise PromptError(
            f"content = {content!r}: pass a text, or a list of texts, images and videos"
        )
    text, numbers = "", dict(earlier)
    for part in cast("list[object]", content):
        found = _part(part)
        if isinstance(found, Kind):
            text += found.universal_tag(numbers[found])
            numbers[found] += 1
        else:
            text += found
    return text


def _part(part: object) -> str | Kind:
    """Return the words of a part, or the kind of its visual."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", part) if isinstance(part, dict) else {}
    name, words = fields.get("type"), fields.get("text", "")
    if name == "text" and isinstance(words, str):
        return words
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise PromptError(
        f'a message has the part {part!r}; pass {{"type": "text", "text": …}}, {{"type": "image"}} '
        'or {"type": "video"}, and images and videos to generate'
    )


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
