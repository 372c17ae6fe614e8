"""Tags that mark the places of images and videos in a text, and the tokens at these places.

Images and videos are the two kinds of visuals. A text may have universal tags,
``<ov_genai_image_0>``, which number the images of a conversation, or the model's own tag once for
each image. Otherwise the images precede the text. Videos have their own tags and numbers.

How it works. A character that Unicode assigns to nothing stands for each place while the chat
template is rendered, so that only the tokens of places are special tokens, not those in messages.

Source: docs/reference/genai.md#tags-of-images, docs/reference/genai.md#videos.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from genai_layer.chat_prompt import ChatPrompt, Span
from genai_layer.errors import PromptError

_START, _END = "<|vision_start|>", "<|vision_end|>"


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of visuals."""

    name: str
    """Name in universal tags."""
    pad: str
    """Token at the places of visuals of this kind."""
    mark: str
    """Character that stands for a place until the chat template is rendered; Unicode assigns it to
    nothing."""

    @property
    def own_tag(self) -> str:
        """The model's own tag."""
        return _START + self.pad + _END

    def universal_tag(self, number: int | str) -> str:
        """Return the tag of a visual of a conversation."""
        return f"<ov_genai_{self.name}_{number}>"

    def tokens(self, count: int) -> list[str]:
        """Return the tokens of a visual that has ``count`` embeddings."""
        return [_START, *[self.pad] * count, _END]


IMAGE = Kind("image", "<|image_pad|>", "\U0010fffc")
VIDEO = Kind("video", "<|video_pad|>", "\U0010fffd")
KINDS = IMAGE, VIDEO


_MARKS = {kind.mark: kind for kind in KINDS}
_SPLIT = re.compile("|".join(_MARKS))
_DIGITS = 9
"""Digits of a tag's number that are read; no conversation has as many visuals."""


@dataclass(frozen=True, slots=True)
class MarkedText:
    """Text with a mark at the place of each visual of a kind."""

    text: str
    order: tuple[int, ...]
    """Visuals in the order of their places, as indices of this message's visuals of the kind."""


def mark_places(text: str, kind: Kind, count: int, first: int) -> MarkedText:
    """Replace the tags of visuals of a kind by marks.

    Args:
        text: a message.
        kind: images or videos.
        count: number of visuals of this message.
        first: number of visuals in earlier messages.

    Raises:
        PromptError: a tag has no visual, or one of an earlier message; both kinds of tags are
            mixed; or the model's own tags are not as many as the visuals.
    """
    name, mark, own_tag = kind.name, kind.mark, kind.own_tag
    if mark in text:
        raise PromptError(f"the text has the character {mark!r}, which marks {name}s; remove it")
    universal = re.compile(kind.universal_tag(r"(\d+)"))
    own = text.count(own_tag)
    numbers = [int(number.lstrip("0")[:_DIGITS] or 0) for number in universal.findall(text)]
    if numbers and own:
        raise PromptError(
            f"the text has tags {own_tag} and {kind.universal_tag('…')}; use one kind"
        )
    for number in numbers:
        tag = kind.universal_tag(number)
        if number < first:
            raise PromptError(f"{tag}: belongs to an earlier message; pass the {name} again")
        if number >= first + count:
            raise PromptError(f"{tag}: no such {name}; pass it, or drop the tag")
    if own and own != count:
        raise PromptError(f"the text has {own} tags {own_tag} for {count} {name}s; match them")
    if numbers:
        return MarkedText(universal.sub(mark, text), tuple(each - first for each in numbers))
    marked = text.replace(own_tag, mark) if own else mark * count + text
    return MarkedText(marked, tuple(range(count)))


def marks_of(text: str) -> list[Kind]:
    """Return the kinds of the marks in a text."""
    return [_MARKS[each] for each in text if each in _MARKS]


def fill_places(prompt: ChatPrompt, places: Sequence[tuple[Kind, int]]) -> ChatPrompt:
    """Replace the marks of a prompt by the tokens of places.

    Args:
        prompt: a rendered prompt.
        places: kind and number of tokens of each visual, in the order of marks.

    Raises:
        PromptError: the chat template dropped, moved or repeated a mark.
    """
    kinds = marks_of(prompt.text)
    if kinds != [kind for kind, _ in places]:
        raise PromptError(
            f"the chat template renders {len(kinds)} places for {len(places)} images and videos; "
            "use one that keeps the content of messages"
        )
    first, *parts = _SPLIT.split(prompt.text)
    text = first
    moved, spans = [0], list[Span]()
    for (kind, count), part in zip(places, parts, strict=True):
        begin = len(text)
        for token in kind.tokens(count):
            spans.append((len(text), len(text) + len(token)))
            text += token
        moved.append(moved[-1] + len(text) - begin - len(kind.mark))
        text += part
    if prompt.tokens is None:
        return ChatPrompt(text, None)
    for begin, end in prompt.tokens:
        shift = moved[len(marks_of(prompt.text[:begin]))]
        spans.append((begin + shift, end + shift))
    return ChatPrompt(text, sorted(spans))
