"""Messages of a chat with their images.

Images belong to the user message that they were passed with, and stay with it in later turns.

Source: docs/reference/genai.md#images-in-a-chat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from genai_layer.chat_history import Message
from genai_layer.errors import PromptError
from genai_layer.vision.encoder import EncodedImage
from genai_layer.vision.prompt_tags import mark_places, universal_tag


@dataclass(frozen=True, slots=True)
class Turn:
    """Message and its images."""

    message: Message
    images: tuple[EncodedImage, ...] = ()


def turns_of(
    messages: Sequence[Message], earlier: Sequence[Turn], images: Sequence[EncodedImage]
) -> list[Turn]:
    """Return the turns of a chat.

    Args:
        messages: the chat.
        earlier: turns of the last generation; they keep their images up to the first change.
        images: those of this generation, which belong to the last user message.

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
    if images:
        turns[asking[-1]] = replace(turns[asking[-1]], images=tuple(images))
    return turns


def mark(turns: Sequence[Turn]) -> tuple[list[Message], list[EncodedImage]]:
    """Return messages with marks of their images, and the images in the order of marks.

    Raises:
        PromptError: tags and images of a message do not match, or its content is not supported.
    """
    messages: list[Message] = []
    ordered: list[EncodedImage] = []
    first = 0
    for turn in turns:
        message = turn.message
        if _is_user(message):
            text = _text(message.get("content"), first)
            marked = mark_places(text, len(turn.images), first)
            message = {**message, "content": marked.text}
            ordered += [turn.images[place] for place in marked.order]
            first += len(turn.images)
        messages.append(message)
    return messages, ordered


def _is_user(message: Message) -> bool:
    return message.get("role") == "user"


def _text(content: object, first: int) -> str:
    """Return the text of a message, with tags for its parts that are images.

    Args:
        content: a text, or a list of parts {"type": "text", "text": …} and {"type": "image"}.
        first: number of images in earlier messages.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise PromptError(f"content = {content!r}: pass a text, or a list of texts and images")
    text, number = "", first
    for part in cast("list[object]", content):
        kind, words = _part(part)
        text += words if kind == "text" else universal_tag(number)
        number += kind == "image"
    return text


def _part(part: object) -> tuple[str, str]:
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", part) if isinstance(part, dict) else {}
    kind, words = fields.get("type"), fields.get("text", "")
    if kind not in ("text", "image") or not isinstance(words, str):
        raise PromptError(
            f'a message has the part {part!r}; pass {{"type": "text", "text": …}} or {{"type": '
            '"image"}, and images to generate'
        )
    return str(kind), words
