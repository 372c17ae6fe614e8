"""Inputs that follow tokens: they have a row for each new token, whatever the token is given as.

A text model takes ids, the language part of a model that sees takes embeddings. Positions go with
either, one for each token or (M-RoPE) one for each of several axes; traits bring other inputs.
Prompts are cut into pieces, padded and read anew in the same way, whatever the inputs.

Source: fact sheet npuw §a.6.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from npuw_layer.backends.protocols import Array, TensorInfo
from npuw_layer.errors import ModelError
from npuw_layer.tensors.names import (
    CACHE_POSITION,
    EMBEDS,
    IDS,
    LAST_TOKEN,
    LOGITS,
    MASK,
    POSITIONS,
)
from npuw_layer.tensors.traits import traits

Shape = tuple[int, ...]

TOKENS = (IDS, EMBEDS)
"""What a token itself may be given as: a model has one of them."""


@dataclass(frozen=True, slots=True)
class TokenKind:
    """What is known of an input with a row for each token, whatever the model.

    Attributes:
        element: its element type.
        width: dimensions of a token's row.
        axes: how many axes there may be before sequences and tokens, if there are any.
        axes_needed: whether there must be some.
    """

    element: str
    width: int = 0
    axes: Container[int] = ()
    axes_needed: bool = False

    def has_axes(self, axes: Shape) -> bool:
        """Return whether the input may have dimensions before those of sequences and tokens."""
        if not axes:
            return not self.axes_needed
        return len(axes) == 1 and axes[0] in self.axes


_OWN: Mapping[str, TokenKind] = {
    IDS: TokenKind("i64"),
    EMBEDS: TokenKind("f32", 1),
    # M-RoPE has axes: time, height and width; Qwen 3 adds the text's (fact sheet npuw §a.6).
    POSITIONS: TokenKind("i64", axes=(3, 4)),
}


@cache
def _kinds() -> Mapping[str, TokenKind]:
    """Return all such inputs by name, in the order of errors."""
    found = dict(_OWN)
    for trait in traits():
        found |= trait.token_kinds
    return found


def beside_tokens() -> tuple[str, ...]:
    """Return the inputs that may go with a token."""
    return tuple(name for name in _kinds() if name not in TOKENS)


def ignored_inputs() -> tuple[str, ...]:
    """Return inputs that exporters leave to models that do not read them.

    The caller may give them all the same.
    """
    return tuple(name for trait in traits() for name in trait.ignored_inputs)


def of_tokens() -> tuple[str, ...]:
    """Return all inputs of static models with a row, or a column, for each token."""
    pairs = (name for trait in traits() for name in trait.pair_names)
    return (*_kinds(), MASK, CACHE_POSITION, LAST_TOKEN, *pairs)


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
    per_token: bool = True

    @staticmethod
    def of(port: TensorInfo) -> TokenInput | None:
        """Read an input; None if it does not follow tokens.

        Args:
            port: its dimensions that count sequences and tokens may be dynamic.

        Raises:
            ModelError: it is called so, but is of another type or shape.
        """
        name, element, shape = port.name, port.element, port.shape
        kind = _kinds().get(name)
        if kind is None:
            return None
        width = kind.width
        split = max(len(shape) - width, 0)
        axes, row = shape[: max(split - 2, 0)], shape[split:]
        known = all(size > 0 for size in row) and len(row) == width
        if element != kind.element or not known or split < 2 or not kind.has_axes(axes):
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


def token_inputs(ports: Iterable[TensorInfo]) -> tuple[TokenInput, ...]:
    """The inputs that follow tokens; what the tokens are given as comes first.

    Raises:
        ModelError: one is of another type or shape.
    """
    found = map(TokenInput.of, ports)
    order = list(_kinds())
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
