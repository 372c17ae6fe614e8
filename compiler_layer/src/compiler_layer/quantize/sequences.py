"""Sequences of tokens that a language model is run over to see its activations."""

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
"""Ids of tokens, [count]."""

BUILT_IN_COUNT = 4
BUILT_IN_LENGTH = 64

_INPUTS: dict[str, Callable[[Tokens], Array]] = {
    "input_ids": lambda tokens: tokens[None],
    "attention_mask": lambda tokens: np.ones((1, tokens.size), np.int64),
    "position_ids": lambda tokens: np.arange(tokens.size)[None],
    "beam_idx": lambda tokens: np.zeros(1, np.int32),
}
"""What each input of a stateful language model is for a sequence on an empty cache."""


def inputs_of(model: Model, tokens: Tokens) -> dict[str, Array]:
    """Give a model's inputs for a sequence.

    Raises:
        CompilerUsageError: it has inputs that a language model over tokens has not.
    """
    names = [port.name for port in model.inputs]
    unknown = [name for name in names if name not in _INPUTS]
    if unknown:
        raise CompilerUsageError(
            f"the model cannot be run over tokens: it has inputs {', '.join(unknown)}; "
            f"known are {', '.join(_INPUTS)}"
        )
    return {name: _INPUTS[name](tokens) for name in names}


def vocabulary_of(model: Model) -> int:
    """Give how many tokens a model knows: the rows of its table of embeddings.

    Raises:
        CompilerUsageError: it has none.
    """
    tables = [weight for weight in find_weights(model) if weight.role == "embedding"]
    if not tables:
        raise CompilerUsageError("the model cannot be run over tokens: it has no embeddings")
    return max(shape_of(table.constant.output)[0] for table in tables)


def built_in_sequences(model: Model) -> list[Tokens]:
    """Give sequences of random tokens of a model's vocabulary, the same each time."""
    draw, vocabulary = np.random.default_rng(0), vocabulary_of(model)
    return [draw.integers(0, vocabulary, BUILT_IN_LENGTH) for _ in range(BUILT_IN_COUNT)]


def read_sequences(path: Path, model: Model) -> list[Tokens]:
    """Read a text file with the ids of a sequence in each line, separated by blanks.

    Raises:
        CompilerUsageError: it cannot be read, has no ids, or one that the model does not know.
    """
    try:
        with looking_at(path, CompilerUsageError):
            lines = read_regular(path).decode().splitlines()
    except UnicodeDecodeError:
        raise CompilerUsageError(f"{path}: it is no text") from None
    vocabulary = vocabulary_of(model)
    found = [
        _ids(f"{path}: line {number}", line.split(), vocabulary)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not found:
        raise CompilerUsageError(f"{path}: has no tokens; a line is one sequence of ids")
    return found


def _ids(place: str, words: Sequence[str], vocabulary: int) -> Tokens:
    for word in words:
        if not word.isascii() or not word.isdigit() or int(word) >= vocabulary:
            raise CompilerUsageError(
                f"{place}: {word[:40]!r} is no token id from 0 to {vocabulary - 1}"
            )
    return np.array([int(word) for word in words], np.int64)
