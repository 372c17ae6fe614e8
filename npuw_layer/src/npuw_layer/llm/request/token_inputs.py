"""Inputs that follow tokens: they have a row for each new token, whatever the token is given as.

A text model takes ids, the language part of a model that sees takes embeddings; positions go with
either, one for each token or (M-RoPE) one for each of several axes; and what else there is of a
token: its type, states, an embedding for each layer, an image's features for some of them. Whatever
there is, prompts are cut into pieces, padded and read anew in the same way.

Source: fact sheet npuw §a.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from npuw_layer.backends.protocols import Array, TensorInfo
from npuw_layer.errors import ModelError
from npuw_layer.llm.names import (
    EMBEDS,
    HIDDEN_STATES,
    IDS,
    INTERNAL_HIDDEN_STATES,
    LOGITS,
    PER_LAYER,
    POSITIONS,
    TOKEN_TYPES,
    VISUAL_EMBEDS,
)

Shape = tuple[int, ...]

TOKENS = (IDS, EMBEDS)
"""What a token itself may be given as: a model has one of them."""

_KINDS: Mapping[str, tuple[str, int]] = {
    IDS: ("i64", 0),
    EMBEDS: ("f32", 1),
    POSITIONS: ("i64", 0),
    TOKEN_TYPES: ("i64", 0),
    VISUAL_EMBEDS: ("f32", 1),
    PER_LAYER: ("f32", 2),
    HIDDEN_STATES: ("f32", 1),
    INTERNAL_HIDDEN_STATES: ("f32", 1),
}
"""Element type, and how many dimensions a token's row has; by name, in the order of errors."""

BESIDE = tuple(name for name in _KINDS if name not in TOKENS)
"""What may go with it."""

_POSITION_AXES = (3, 4)
"""Of M-RoPE: time, height and width; Qwen 3 adds the text's (fact sheet npuw §a.6)."""

OPTIONAL = (TOKEN_TYPES, PER_LAYER)
"""What exporters leave to models that do not read it: it may be given all the same."""


@dataclass(frozen=True, slots=True)
class TokenInput:
    """An input [*axes, sequences, tokens, *row].

    On the host, what it is set to lies by tokens: ``rows``, [n, *axes, *row].
    """

    name: str
    element: str
    axes: Shape = ()
    """Of positions, if they have several: how many; of features, for how many layers."""
    row: Shape = ()
    """What a token has, e.g. the width of embeddings."""

    @staticmethod
    def of(port: TensorInfo) -> TokenInput | None:
        """Read an input; None if it does not follow tokens.

        Args:
            port: its dimensions that count sequences and tokens may be dynamic.

        Raises:
            ModelError: it is called so, but is of another type or shape.
        """
        name, element, shape = port.name, port.element, port.shape
        if name not in _KINDS:
            return None
        wanted, width = _KINDS[name]
        split = max(len(shape) - width, 0)
        axes, row = shape[: max(split - 2, 0)], shape[split:]
        known = all(size > 0 for size in row) and len(row) == width
        if element != wanted or not known or split < 2 or not _has_axes(name, axes):
            raise ModelError(f"{name} of {element} {list(shape)}, which follows no tokens")
        return TokenInput(name, element, axes, row)

    def shape(self, sequences: int, tokens: int) -> Shape:
        """That of the port of a static model."""
        return (*self.axes, sequences, tokens, *self.row)

    @property
    def each(self) -> Shape:
        """That of what the host has of one token."""
        return (*self.axes, *self.row)

    @property
    def described(self) -> str:
        """Its type and shape, for people."""
        dims = [*map(str, self.axes), "1", "tokens", *map(str, self.row)]
        return f"{self.element} [{', '.join(dims)}]"

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether values of a shape are those of one sequence's tokens."""
        at = len(self.axes) + 1
        return len(shape) > at and tuple(shape) == self.shape(1, shape[at])

    def rows(self, values: Array) -> Array:
        """Order the values of one sequence by tokens; a view."""
        sequence: Array = values[(*[slice(None)] * len(self.axes), 0)]
        return sequence.transpose(
            len(self.axes), *(i for i in range(sequence.ndim) if i != len(self.axes))
        )

    def fill(self, values: Array, rows: Array) -> None:
        """Set a static model's input: rows in use to the left, zeros behind."""
        target = self.rows(values)
        target[: len(rows)] = rows
        target[len(rows) :] = 0


def _has_axes(name: str, axes: Shape) -> bool:
    """Whether an input may have dimensions before those of sequences and tokens."""
    if name == VISUAL_EMBEDS:
        return len(axes) == 1 and axes[0] > 0
    return not axes or (name == POSITIONS and len(axes) == 1 and axes[0] in _POSITION_AXES)


def token_inputs(ports: Iterable[TensorInfo]) -> tuple[TokenInput, ...]:
    """The inputs that follow tokens; what the tokens are given as comes first.

    Raises:
        ModelError: one is of another type or shape.
    """
    found = map(TokenInput.of, ports)
    order = list(_KINDS)
    return tuple(sorted(filter(None, found), key=lambda one: order.index(one.name)))


def check_slots(inputs: Sequence[TokenInput], outputs: Sequence[str]) -> None:
    """See that conversations that run together can say and hear all that the model has of a token.

    Args:
        inputs: that follow tokens.
        outputs: of the model.

    Raises:
        ModelError: they say ids, whose positions are counted, and hear logits.
    """
    for port in inputs:
        if port.name not in (IDS, POSITIONS) or port.axes:
            raise ModelError(
                f"several conversations at once take ids, one position for each; the model takes "
                f"{port.name} {port.described}"
            )
    others = [name for name in outputs if name != LOGITS]
    if others:
        raise ModelError(f"several conversations at once are given no {', '.join(others)}")


def new_tokens_of(shapes: Mapping[str, Shape]) -> int | None:
    """How many new tokens a static model takes, by its inputs' shapes; None if it takes none."""
    return next((shapes[name][1] for name in TOKENS if name in shapes), None)
