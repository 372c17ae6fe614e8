"""Trait of images: features become rows of all tokens; token types need whole prompts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import ClassVar

from npuw_layer.api.model_port import OPEN
from npuw_layer.backends.protocols import Array, Device, TensorInfo
from npuw_layer.errors import TensorError
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.trait import CallerInput, ConversationPart, Instance, OpenInput
from npuw_layer.tensors.token_inputs import TokenInput, TokenKind
from npuw_layer.traits.graph_trait import GraphTrait
from npuw_layer.traits.images.names import PER_LAYER, TOKEN_TYPES, VISUAL_EMBEDS, VISUAL_MASKS
from npuw_layer.traits.images.visual_rows import MARKS, VisualRows, spread


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
                "tokens of an image attend to later ones only in a prompt that is read whole; "
                "pass the conversation from its beginning"
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


def _has_types(tokens: NewTokens) -> bool:
    types = tokens.rows.get(TOKEN_TYPES)
    return types is not None and bool(types.any())


TRAIT = Images("images")
