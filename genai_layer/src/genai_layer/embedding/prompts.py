"""Prompts of embeddings: from a text with visuals to token ids, and groups in their order.

A video is one place of ``video_pad`` tokens for each group of frames, after the group's time.

Source: docs/reference/genai.md#embeddings-of-images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import ChatPrompt, ChatPrompts
from genai_layer.embedding.encoder import EncodedGroup
from genai_layer.errors import ModelError, PromptError
from genai_layer.tokenizer import Tokenizer
from genai_layer.vision.prompt_tags import (
    IMAGE,
    KINDS,
    VIDEO,
    Kind,
    fill_places,
    mark_places,
    marks_of,
)


@dataclass(frozen=True, slots=True)
class Visual:
    """Image or video of a call."""

    kind: Kind
    groups: Sequence[EncodedGroup]
    """An image, or groups of frames."""
    seconds: Sequence[float] = ()
    """Time of each group of a video."""

    @property
    def marks(self) -> str:
        """Text at the visual's place, with a mark for each group."""
        if self.kind is IMAGE:
            return IMAGE.mark
        return "".join(f"<{time:.1f} seconds>{VIDEO.mark}" for time in self.seconds)


class EmbeddingPrompts:
    """Prompts of a pipeline.

    Args:
        tokenizer: the model's.

    Raises:
        ModelError: the tokenizer adds special tokens before texts.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._chats = ChatPrompts(tokenizer)
        self._end = _added_tokens(tokenizer)

    def encode(
        self, text: str, visuals: Sequence[Visual], instruction: str | None
    ) -> tuple[list[int], list[EncodedGroup]]:
        """Return a prompt's ids, and the images and groups in the order of their places.

        Args:
            text: the caller's text.
            visuals: images, then videos.
            instruction: what the model is to do; None for nothing.

        Raises:
            PromptError: tags and visuals do not match, or the prompt has no tokens.
            TemplateError: the chat template fails.
        """
        marked, ordered = _mark(text, visuals)
        groups = [group for visual in ordered for group in visual.groups]
        places = [(group.kind, group.grid.count) for group in groups]
        filled = fill_places(self._render(marked, instruction), places)
        ids = [*self._chats.encode(filled), *self._end]
        if not ids:
            raise PromptError(f"the text {text!r} has no tokens; pass a longer one")
        return ids, groups

    def _render(self, text: str, instruction: str | None) -> ChatPrompt:
        if instruction is None:
            return ChatPrompt(text, None)
        if not self._tokenizer.chat_template:
            return ChatPrompt(instruction + text, None)
        messages = [("system", instruction), ("user", text)]
        history = ChatHistory([{"role": role, "content": content} for role, content in messages])
        return self._chats.render(history, add_generation_prompt=False)


def _mark(text: str, visuals: Sequence[Visual]) -> tuple[str, list[Visual]]:
    """Return a text with marks at the places of visuals, and the visuals in their order."""
    by_kind = {kind: [each for each in visuals if each.kind is kind] for kind in KINDS}
    if not any(_has_tag(text, kind) for kind in KINDS):
        for kind, given in by_kind.items():
            text += "".join(map(kind.universal_tag, range(len(given))))
    placed: dict[Kind, Iterator[Visual]] = {}
    for kind, given in by_kind.items():
        marked = mark_places(text, kind, len(given), 0)
        text, placed[kind] = marked.text, iter([given[place] for place in marked.order])
    ordered = [next(placed[kind]) for kind in marks_of(text)]
    marks = iter([visual.marks for visual in ordered])
    known = {kind.mark for kind in KINDS}
    return "".join(next(marks) if sign in known else sign for sign in text), ordered


def _has_tag(text: str, kind: Kind) -> bool:
    return kind.universal_tag("").removesuffix(">") in text or kind.own_tag in text


def _added_tokens(tokenizer: Tokenizer) -> list[int]:
    """Return the tokens that end each prompt.

    Raises:
        ModelError: the tokenizer adds tokens before texts, too.
    """
    plain, added = (
        tokenizer.encode("a", add_special_tokens=flag).input_ids.data[0].tolist()
        for flag in (False, True)
    )
    if added[: len(plain)] != plain:
        raise ModelError(
            "the tokenizer adds special tokens before a text; an embedding model's may add them "
            "only after it"
        )
    # openvino_genai writes them into the text, and encodes it with special tokens.
    return added[len(plain) :] * 2
