"""Sequences of tokens for measuring a language model's activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.elements import Array
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.quantize.weights import find_weights
from driver_layer.support.files import looking_at, read_regular

Tokens = npt.NDArray[np.int64]
"""Token ids, [count]."""

BUILT_IN_COUNT = 4
BUILT_IN_LENGTH = 64

_INPUTS: dict[str, Callable[[Tokens], Array]] = {
    "input_ids": lambda tokens: tokens[None],
    "attention_mask": lambda tokens: np.ones((1, tokens.size), np.int64),
    "position_ids": lambda tokens: np.arange(tokens.size)[None],
    "beam_idx": lambda tokens: np.zeros(1, np.int32),
}
"""Values of a stateful language model's inputs for a sequence, with an empty cache."""


def inputs_of(model: Model, tokens: Tokens) -> dict[str, Array]:
    """Return a model's inputs for a sequence.

    Raises:
        CompilerUsageError: the model has inputs that a language model over tokens does not have.
    """
    names = [port.name for port in model.inputs]
    unknown = [name for name in names if name not in _INPUTS]
    if unknown:
        raise CompilerUsageError(
            f"the model cannot be run over tokens: it has inputs {', '.join(unknown)}; "
            f"supported are {', '.join(_INPUTS)}"
        )
    return {name: _INPUTS[name](tokens) for name in names}


def vocabulary_of(model: Model) -> int:
    """Return the size of a model's vocabulary: the rows of its embedding table.

    Raises:
        CompilerUsageError: the model has no embeddings.
    """
    tables = [weight for weight in find_weights(model) if weight.role == "embedding"]
    if not tables:
        raise CompilerUsageError("the model cannot be run over tokens: it has no embeddings")
    return max(shape_of(table.constant.output)[0] for table in tables)


def built_in_sequences(model: Model) -> list[Tokens]:
    """Return sequences of random tokens of a model's vocabulary; always the same ones."""
    draw, vocabulary = np.random.default_rng(0), vocabulary_of(model)
    return [draw.integers(0, vocabulary, BUILT_IN_LENGTH) for _ in range(BUILT_IN_COUNT)]


def read_sequences(path: Path, model: Model) -> list[Tokens]:
    """Read a text file with one sequence of ids per line, separated by blanks.

    Raises:
        CompilerUsageError: the file cannot be read, has no ids, or an id is not in the vocabulary.
    """
    try:
        with looking_at(path, CompilerUsageError):
            lines = read_regular(path).decode().splitlines()
    except UnicodeDecodeError:
        raise CompilerUsageError(f"{path}: is not text") from None
    vocabulary = vocabulary_of(model)
    found = [
        _ids(f"{path}: line {number}", line.split(), vocabulary)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not found:
        raise CompilerUsageError(f"{path}: has no tokens; write one sequence of ids per line")
    return found


def _ids(place: str, words: Sequence[str], vocabulary: int) -> Tokens:
    for word in words:
        if not word.isascii() or not word.isdigit() or int(word) >= vocabulary:
            raise CompilerUsageError(
                f"{place}: {word[:40]!r} is not a token id from 0 to {vocabulary - 1}"
            )
    return np.array([int(word) for word in words], np.int64)
