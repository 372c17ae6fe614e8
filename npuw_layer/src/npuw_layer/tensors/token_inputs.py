"""Inputs that follow tokens: a row for each new token, which is an id or an embedding.

A text model accepts ids, the language part of a vision-language model accepts embeddings. Both
accept positions: one for each token, or (M-RoPE) one for each of several axes. Traits add other
inputs. All these inputs are cut, padded and read again in the same way.

Source: docs/reference/npuw.md#tensors-of-static-models.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from npuw_layer.backends.protocols import Array, TensorInfo
from npuw_layer.errors import ModelError, TensorError
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
"""Inputs that hold the tokens themselves; a model has one of them."""


@dataclass(frozen=True, slots=True)
class TokenKind:
    """Properties of an input with a row for each token that hold in every model.

    Attributes:
        element: element type.
        width: number of dimensions of a token's row.
        axes: allowed sizes of the dimension before sequences and tokens, if any.
        axes_needed: whether that dimension must exist.
    """

    element: str
    width: int = 0
    axes: Container[int] = ()
    axes_needed: bool = False

    def has_axes(self, axes: Shape) -> bool:
        """Return whether the input may have these dimensions before sequences and tokens."""
        if not axes:
            return not self.axes_needed
        return len(axes) == 1 and axes[0] in self.axes


_OWN: Mapping[str, TokenKind] = {
    IDS: TokenKind("i64"),
    EMBEDS: TokenKind("f32", 1),
    # M-RoPE has axes: time, height and width; Qwen 3 adds the text's
    # (docs/reference/npuw.md#tensors-of-static-models).
    POSITIONS: TokenKind("i64", axes=(3, 4)),
}


@cache
def _kinds() -> Mapping[str, TokenKind]:
    """Return all inputs with a row for each token by name, in the order of error messages."""
    found = dict(_OWN)
    for trait in traits():
        found |= trait.token_kinds
    return found


def beside_tokens() -> tuple[str, ...]:
    """Return the inputs that may accompany a token."""
    return tuple(name for name in _kinds() if name not in TOKENS)


def ignored_inputs() -> tuple[str, ...]:
    """Return inputs that exporters keep in models that do not read them.

    The caller may still set them.
    """
    return tuple(name for trait in traits() for name in trait.ignored_inputs)


def of_tokens() -> tuple[str, ...]:
    """Return all inputs of static models with a row or a column for each token."""
    pairs = (name for trait in traits() for name in trait.pair_names)
    return (*_kinds(), MASK, CACHE_POSITION, LAST_TOKEN, *pairs)


@dataclass(frozen=True, slots=True)
class TokenInput:
    """An input [*axes, sequences, tokens, *row].

    The host keeps its values by token: ``rows``, [n, *axes, *row].
    """

    name: str
    element: str
    axes: Shape = ()
    """Number of position axes if there are several; of features, number of layers."""
    row: Shape = ()
    """Shape of a token's row, e.g. the width of embeddings."""
    per_token: bool = True

    @staticmethod
    def of(port: TensorInfo) -> TokenInput | None:
        """Describe a port as an input that follows tokens; None if the port does not follow tokens.

        Args:
            port: port; its dimensions of sequences and tokens may be dynamic.

        Raises:
            ModelError: the port has such an input's name, but another type or shape.
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
            raise ModelError(f"{name} of {element} {list(shape)}, which has no row for each token")
        return TokenInput(name, element, axes, row)

    def shape(self, sequences: int, tokens: int) -> Shape:
        """Return the shape of a static model's port."""
        return (*self.axes, sequences, tokens, *self.row)

    @property
    def each(self) -> Shape:
        """Shape of one token's values on the host."""
        return (*self.axes, *self.row)

    @property
    def described(self) -> str:
        """Type and shape, for messages."""
        dims = [*map(str, self.axes), "1", "tokens", *map(str, self.row)]
        return f"{self.element} [{', '.join(dims)}]"

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether values of a shape are those of one sequence's tokens."""
        at = len(self.axes) + 1
        return len(shape) > at and tuple(shape) == self.shape(1, shape[at])

    def sequences(self, shape: Sequence[int]) -> int:
        """Return the number of sequences in values of a shape; 0 if the rank does not fit."""
        fits = len(shape) == len(self.axes) + 2 + len(self.row)
        return shape[len(self.axes)] if fits else 0

    def sequence(self, values: Array, number: int) -> Array:
        """Return the values of one of several sequences, as a batch of one; a view."""
        return values[(*[slice(None)] * len(self.axes), slice(number, number + 1))]

    def rows(self, values: Array) -> Array:
        """Return the values of one sequence ordered by token; a view."""
        sequence: Array = values[(*[slice(None)] * len(self.axes), 0)]
        return sequence.transpose(
            len(self.axes), *(i for i in range(sequence.ndim) if i != len(self.axes))
        )

    def fill(self, values: Array, rows: Array) -> None:
        """Set a static model's input: rows in use first, zeros after them."""
        target = self.rows(values)
        target[: len(rows)] = rows
        target[len(rows) :] = 0


def token_inputs(ports: Iterable[TensorInfo]) -> tuple[TokenInput, ...]:
    """Return the inputs that follow tokens; the one that holds the tokens comes first.

    Raises:
        ModelError: an input is of another type or shape.
    """
    found = map(TokenInput.of, ports)
    order = list(_kinds())
    return tuple(sorted(filter(None, found), key=lambda one: order.index(one.name)))


def check_slots(inputs: Sequence[TokenInput], outputs: Sequence[str]) -> None:
    """Check that conversations can run together: the model has only ids and logits.

    Args:
        inputs: inputs that follow tokens.
        outputs: names of the model's outputs.

    Raises:
        ModelError: the model has inputs other than ids and one position for each, or outputs other
            than logits.
    """
    for port in inputs:
        if port.name not in (IDS, POSITIONS) or port.axes:
            raise ModelError(
                f"batched conversations support only ids, with one position each; the "
                f"model has {port.name} {port.described}"
            )
    others = [name for name in outputs if name != LOGITS]
    if others:
        raise ModelError(f"batched conversations do not support the outputs {', '.join(others)}")


def new_tokens_of(shapes: Mapping[str, Shape]) -> int | None:
    """Return a static model's number of new tokens, by its inputs' shapes; None without tokens."""
    return next((shapes[name][1] for name in TOKENS if name in shapes), None)


def check_ids(ids: Array, vocabulary: int | None, place: Sequence[int] = ()) -> None:
    """Check that token ids are in the vocabulary; others would be looked up outside the embeddings.

    Args:
        ids: i64 of any shape.
        vocabulary: number of token ids; None if unknown.
        place: first indices of the ids within the input, for the message.

    Raises:
        TensorError: an id is not in the vocabulary.
    """
    if vocabulary is None or not ids.size:
        return
    if ids.min() >= 0 and ids.max() < vocabulary:
        return
    index = tuple(np.argwhere((ids < 0) | (ids >= vocabulary))[0].tolist())
    raise TensorError(
        f"{IDS}{[*place, *index]} is {ids[index]}, not a token id: the model's vocabulary has "
        f"{vocabulary} tokens, from 0 to {vocabulary - 1}"
    )
