"""Outputs that follow tokens: a row for each new token, in addition to the logits.

An example is ``last_hidden_state``, which a draft model may read. The output has a row for each
token of an inference, regardless of the chunks that a prompt was read in.

Source: docs/reference/npuw.md#lm-head.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from npuw_layer.backends.protocols import ASSIGN_PREFIX, Array, TensorInfo
from npuw_layer.errors import ModelError
from npuw_layer.tensors.names import EMBED, LOGITS
from npuw_layer.tensors.traits import traits


@dataclass(frozen=True, slots=True)
class TokenOutput:
    """An output f32 [sequences, tokens, width]."""

    name: str
    width: int

    def shape(self, sequences: int, tokens: int) -> tuple[int, ...]:
        """Return the shape of a static model's port."""
        return (sequences, tokens, self.width)


def token_outputs(ports: Iterable[TensorInfo]) -> tuple[TokenOutput, ...]:
    """Return all outputs except logits, hidden states for the LM head, caches, and traits' outputs.

    Raises:
        ModelError: an output is not f32 [sequences, tokens, width].
    """
    others = (ASSIGN_PREFIX, *(name for trait in traits() for name in trait.other_outputs))
    found: list[TokenOutput] = []
    for port in ports:
        if port.name in (LOGITS, EMBED) or port.name.startswith(others):
            continue
        if port.element != "f32" or len(port.shape) != 3 or port.shape[-1] <= 0:
            raise ModelError(
                f"the output {port.name} is {port.element} {list(port.shape)}, not f32 "
                "[1, tokens, width]: it does not follow tokens"
            )
        found.append(TokenOutput(port.name, port.shape[-1]))
    return tuple(found)


class Gathered:
    """Output rows of the tokens of an inference, collected chunk by chunk.

    Args:
        outputs: outputs of the model.
    """

    def __init__(self, outputs: Sequence[TokenOutput]) -> None:
        self._pieces: dict[str, list[Array]] = {one.name: [] for one in outputs}

    def begin(self) -> None:
        """Discard the rows of the previous inference."""
        for pieces in self._pieces.values():
            pieces.clear()

    def add(self, name: str, rows: Array) -> None:
        """Copy an output's rows of the next tokens, f32 [n, width]."""
        self._pieces[name].append(rows.copy())

    def values(self) -> dict[str, Array]:
        """Return all outputs by name, f32 [1, tokens, width]; none before the first inference."""
        return {
            name: (pieces[0] if len(pieces) == 1 else np.concatenate(pieces))[None]
            for name, pieces in self._pieces.items()
            if pieces
        }
