"""Sequences of tokens for measuring a language model's activations."""

from __future__ import annotations

import itertools
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
"""Token ids, [count]; of a batch, [sequences, count]."""

BUILT_IN_COUNT = 4
BUILT_IN_LENGTH = 64

_MOST_TOKENS = 1024
"""Maximum tokens of a batch of several sequences, which bounds the memory of activations."""

_INPUTS: dict[str, Callable[[Tokens], Array]] = {
    "input_ids": lambda batch: batch,
    "attention_mask": np.ones_like,
    "position_ids": lambda batch: np.tile(np.arange(len(batch[0])), (len(batch), 1)),
    "beam_idx": lambda batch: np.arange(batch.shape[0], dtype=np.int32),
}
"""Values of a stateful language model's inputs for a batch, with an empty cache."""


def batched(model: Model, sequences: Sequence[Tokens]) -> list[Tokens]:
    """Return batches of sequences of one length, which read and convert each weight once.

    A model whose inputs have a fixed batch gets each sequence alone.
    """
    fixed = any(shape_of(port.value)[:1] == (1,) for port in model.inputs)
    batches: list[Tokens] = []
    for length, group in itertools.groupby(sorted(sequences, key=len), len):
        stack, most = np.stack([*group]), 1 if fixed else max(1, _MOST_TOKENS // length)
        batches += [stack[first : first + most] for first in range(0, len(stack), most)]
    return batches


def inputs_of(model: Model, batch: Tokens) -> dict[str, Array]:
    """Return a model's inputs for a batch of sequences.

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
    return {name: _INPUTS[name](batch) for name in names}


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
