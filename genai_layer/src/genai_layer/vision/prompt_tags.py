"""Tags that mark the places of images in a text, and the tokens at these places.

A text may have universal tags, ``<ov_genai_image_0>``, which number the images of a conversation,
or the model's own tag once for each image. Otherwise the images precede the text.

How it works. A character that Unicode assigns to nothing stands for each place while the chat
template is rendered, so that only the tokens of places are special tokens, not those in messages.

Source: docs/reference/genai.md#tags-of-images.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from genai_layer.chat_prompt import ChatPrompt
from genai_layer.control_tokens import Span
from genai_layer.errors import PromptError

_START, PAD, _END = "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"
_OWN_TAG = _START + PAD + _END
_UNIVERSAL = re.compile(r"<ov_genai_image_(\d+)>")
_MARK = "\U0010fffc"


@dataclass(frozen=True, slots=True)
class MarkedText:
    """Text with a mark at the place of each image."""

    text: str
    order: tuple[int, ...]
    """Images in the order of their places, as indices of this message's images."""


def universal_tag(number: int) -> str:
    """Return the tag of an image of a conversation."""
    return f"<ov_genai_image_{number}>"


def mark_places(text: str, images: int, first: int) -> MarkedText:
    """Replace the tags of images by marks.

    Args:
        text: a message.
        images: number of images of this message.
        first: number of images in earlier messages.

    Raises:
        PromptError: a tag has no image, or an image of an earlier message; both kinds of tags are
            mixed; or the model's own tags are not as many as the images.
    """
    if _MARK in text:
        raise PromptError(f"the text has the character {_MARK!r}, which marks images; remove it")
    own = text.count(_OWN_TAG)
    numbers = [int(number) for number in _UNIVERSAL.findall(text)]
    if numbers and own:
        raise PromptError(f"the text has tags {_OWN_TAG} and <ov_genai_image_…>; use one kind")
    for number in numbers:
        if number < first:
            raise PromptError(
                f"{universal_tag(number)}: an image of an earlier message; pass it again"
            )
        if number >= first + images:
            raise PromptError(f"{universal_tag(number)}: no such image; pass it, or drop the tag")
    if own and own != images:
        raise PromptError(f"the text has {own} tags {_OWN_TAG} for {images} images; match them")
    if numbers:
        return MarkedText(_UNIVERSAL.sub(_MARK, text), tuple(each - first for each in numbers))
    marked = text.replace(_OWN_TAG, _MARK) if own else _MARK * images + text
    return MarkedText(marked, tuple(range(images)))


def fill_places(prompt: ChatPrompt, tokens: Sequence[int]) -> ChatPrompt:
    """Replace the marks of a prompt by the tokens of places.

    Args:
        prompt: a rendered prompt.
        tokens: number of tokens of each image, in the order of marks.

    Raises:
        PromptError: the chat template dropped or repeated a mark.
    """
    parts = prompt.text.split(_MARK)
    if len(parts) != len(tokens) + 1:
        raise PromptError(
            f"the chat template renders {len(parts) - 1} places for {len(tokens)} images; use one "
            "that keeps the content of messages"
        )
    text = parts[0]
    moved, spans = [0], list[Span]()
    for count, part in zip(tokens, parts[1:], strict=True):
        for token in (_START, *[PAD] * count, _END):
            spans.append((len(text), len(text) + len(token)))
            text += token
        text += part
        moved.append(moved[-1] + len(_START) + count * len(PAD) + len(_END) - len(_MARK))
    if prompt.tokens is None:
        return ChatPrompt(text, None)
    for begin, end in prompt.tokens:
        shift = moved[prompt.text.count(_MARK, 0, begin)]
        spans.append((begin + shift, end + shift))
    return ChatPrompt(text, sorted(spans))
