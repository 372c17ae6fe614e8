"""Trait of images: features become rows of all tokens; token types need whole prompts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from npuw_layer.api.model_port import OPEN
from npuw_layer.backends.protocols import Array, Device, TensorInfo
from npuw_layer.errors import TensorError
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.trait import CallerInput, ConversationPart, Instance, OpenInput
from npuw_layer.tensors.token_inputs import TokenInput, TokenKind
from npuw_layer.traits.graph_trait import GraphTrait

TOKEN_TYPES = "token_type_ids"
"""i64 [1, n]: 1 at the tokens of an image, which attend to one another in Gemma 3."""

VISUAL_MASKS, VISUAL_EMBEDS = "visual_pos_masks", "deepstack_visual_embeds"
"""boolean [1, n], true at tokens of images; and f32 [levels, tokens of images, width], which Qwen 3
VL adds to their hidden states after the first layers (DeepStack)."""

PER_LAYER = "per_layer_inputs"
"""f32 [1, n, layers, width]: embeddings of a token for each layer of Gemma 3n and Gemma 4."""

MARKS = TokenInput(VISUAL_MASKS, "boolean")
"""Input of marks, true at tokens of images."""


@dataclass(frozen=True, slots=True)
class VisualRows:
    """Input of features in the caller's form, f32 [levels, tokens of images, width].

    The caller marks the new tokens that belong to images, and passes one row of features for each
    marked token, in order. The host turns them into a row for every token, zero for text, so a
    prompt may be cut anywhere, even within an image.

    Source: openvino.genai's inputs embedder for Qwen 3 VL, and its pipeline, which without images
        passes one row of zeros and marks no token.
    """

    levels: int
    """Number of layers that add features."""
    width: int
    name: str = VISUAL_EMBEDS
    element: str = "f32"
    per_token: bool = False

    @staticmethod
    def of(port: TokenInput) -> VisualRows:
        """Return the caller's input for a static model's input."""
        levels, width = port.each
        return VisualRows(levels, width)

    @property
    def described(self) -> str:
        """Type and shape, for messages."""
        return f"{self.element} [{self.levels}, tokens of images, {self.width}]"

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether values of a shape are those of some tokens."""
        return len(shape) == 3 and (shape[0], shape[2]) == (self.levels, self.width)

    def rows(self, values: Array) -> Array:
        """Return the values ordered by token, [tokens of images, levels, width]; a view."""
        return values.transpose(1, 0, 2)


class _Images(Instance, ConversationPart):
    """Inputs of images; stateless, so all conversations share the instance."""

    one_row_for = "inputs of images"

    def part(self, device: Device, cache: KVStrategy, history: History) -> ConversationPart:
        """Return the instance itself."""
        return self

    def caller_inputs(self, inputs: Sequence[TokenInput]) -> Sequence[CallerInput]:
        """Return inputs for marks of images' tokens, and for features of only these tokens."""
        return [
            each
            for one in inputs
            if one.name == VISUAL_EMBEDS
            for each in (MARKS, VisualRows.of(one))
        ]

    def join(self, rows: dict[str, Array]) -> None:
        """Spread features over all tokens.

        Raises:
            TensorError: the number of rows is not that of marked tokens.
        """
        if VISUAL_EMBEDS in rows:
            rows[VISUAL_EMBEDS] = spread(rows.pop(VISUAL_MASKS), rows[VISUAL_EMBEDS])

    def check(self, tokens: NewTokens, keep: int, prompt: bool) -> None:
        """Reject tokens of images outside a prompt that is read whole.

        Raises:
            TensorError: there are such tokens.
        """
        if _has_types(tokens) and (keep or len(tokens) == 1):
            raise TensorError(
                f"{TOKEN_TYPES} are not 0 for {len(tokens)} tokens after {keep} stored ones, but "
                "tokens of an image attend to later ones only in a prompt that is read whole; pass "
                "the conversation from its beginning, and images within NPUW_LLM_MAX_PROMPT_LEN"
            )

    def prefix_key(self, tokens: NewTokens) -> bytes | None:
        """Return None if tokens attend to later ones of their image."""
        return None if _has_types(tokens) else b""


class Images(GraphTrait):
    """Inputs of vision-language models other than embeddings."""

    token_kinds: ClassVar[Mapping[str, TokenKind]] = {
        TOKEN_TYPES: TokenKind("i64"),
        VISUAL_EMBEDS: TokenKind("f32", 1, range(1, sys.maxsize), axes_needed=True),
        PER_LAYER: TokenKind("f32", 2),
    }
    ignored_inputs = (TOKEN_TYPES, PER_LAYER)

    def recognise(self, inputs: Sequence[TensorInfo]) -> Instance | None:
        """Return the instance for a model with image features or token types."""
        found = any(info.name in (TOKEN_TYPES, VISUAL_EMBEDS) for info in inputs)
        return _Images() if found else None

    def open_inputs(self, info: TensorInfo) -> Sequence[OpenInput] | None:
        """Return marks and features of images' tokens, in the exporters' order."""
        one = TokenInput.of(info) if info.name == VISUAL_EMBEDS else None
        if one is None:
            return None
        marks = VISUAL_MASKS, MARKS.element, (OPEN, OPEN)
        return [marks, (one.name, one.element, (*one.axes, OPEN, *one.row))]


def spread(marks: Array, rows: Array) -> Array:
    """Spread rows of marked tokens over all tokens.

    Args:
        marks: boolean [n], true at tokens of images.
        rows: rows of these tokens, [marked, levels, width]; any number if none is marked.

    Returns:
        [n, levels, width]: zeros at tokens of text.

    Raises:
        TensorError: the number of rows is not that of marked tokens.
    """
    count = int(marks.sum())
    if count and count != len(rows):
        raise TensorError(
            f"{VISUAL_MASKS} marks {count} tokens, but {VISUAL_EMBEDS} has rows for {len(rows)}"
        )
    found = np.zeros((len(marks), *rows.shape[1:]), rows.dtype)  # no memory until written
    if count:
        found[marks] = rows
    return found


def _has_types(tokens: NewTokens) -> bool:
    types = tokens.rows.get(TOKEN_TYPES)
    return types is not None and bool(types.any())


TRAIT = Images("images")
