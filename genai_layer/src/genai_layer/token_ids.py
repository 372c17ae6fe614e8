"""Inputs that callers pass: texts, and token ids as lists, arrays and tensors.

Source: docs/reference/genai.md#tokenizer, docs/reference/genai.md#results. Ours: generation accepts
arrays and lists, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.kinds import brief
from genai_layer.results import TokenizedInputs
from genai_layer.tensor import HasData, array_of, is_tensor

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Row = Sequence[int]
Rows = HasData | npt.NDArray[Any] | Sequence[Row]
Ids = TokenizedInputs | HasData | npt.NDArray[Any] | Sequence[Row]
"""Ids that a pipeline continues: i64 [prompts, n]."""


def is_ids(inputs: object) -> TypeIs[Ids]:
    """Return whether the inputs of a generation are token ids."""
    if isinstance(inputs, list | tuple):
        return any(not isinstance(one, str | dict) for one in cast("Sequence[object]", inputs))
    return isinstance(inputs, TokenizedInputs | np.ndarray) or is_tensor(inputs)


def prompts_ids(inputs: Ids) -> list[list[int]]:
    """Return the ids of each prompt, without those that a mask hides.

    Raises:
        PromptError: the ids are not i64 [prompts, n], or the mask has another shape.
    """
    given = inputs.input_ids if isinstance(inputs, TokenizedInputs) else inputs
    rows = array_of(given)
    if not rows.size and isinstance(given, list | tuple):
        rows = rows.astype(np.int64)
    if rows.dtype != np.int64 or rows.ndim != 2 or not len(rows):
        remedy = "pass rows" if rows.dtype == np.int64 else "convert them to i64"
        raise PromptError(
            f"token ids are {rows.dtype} {list(rows.shape)}, not i64 [prompts, n]; {remedy}"
        )
    if not isinstance(inputs, TokenizedInputs):
        return rows.tolist()
    mask = array_of(inputs.attention_mask)
    if mask.shape != rows.shape:
        raise PromptError(
            f"attention_mask has the shape {list(mask.shape)}, not {list(rows.shape)} of input_ids"
        )
    return [row[shown == 1].tolist() for row, shown in zip(rows, mask, strict=True)]


def texts_of(inputs: str | list[str]) -> list[str]:
    """Return the texts to continue.

    Raises:
        PromptError: there is no text.
    """
    if not inputs and not isinstance(inputs, str):
        raise PromptError("inputs = []: pass a text, or a list of at least one text")
    return [inputs] if isinstance(inputs, str) else inputs


def is_row(tokens: Row | Rows) -> TypeIs[Row]:
    """Return whether tokens to decode are one text's: a list, or an array of one dimension."""
    if isinstance(tokens, np.ndarray):
        return tokens.ndim == 1
    if not isinstance(tokens, list | tuple):
        return False
    return not tokens or not isinstance(tokens[0], list | tuple | np.ndarray)


def row_of(tokens: Row) -> list[int]:
    """Return ids that a vocabulary may have; others, which have no text, are dropped.

    Raises:
        PromptError: an id is not an integer.
    """
    try:
        return [number for token in tokens if 0 <= (number := index(token)) < 1 << 32]
    except TypeError:
        raise PromptError(f"tokens = {brief(tokens)}: pass integers") from None


def rows_of(tokens: Rows) -> list[list[int]]:
    """Return the rows of a batch to decode.

    Raises:
        PromptError: a tensor is not i64 [texts, n], or an id is not an integer.
    """
    if isinstance(tokens, list | tuple):
        return [row_of(row) for row in tokens]
    rows = array_of(tokens)
    if is_tensor(tokens) and rows.dtype != np.int64:
        raise PromptError(f"tokens are {rows.dtype}: a tensor of ids must be i64; convert it")
    if rows.ndim != 2:
        raise PromptError(
            f"tokens have the shape {list(rows.shape)}, not [texts, n]; pass a row as a list"
        )
    return [row_of(row) for row in rows.tolist()]
