"""Values of a static model's inputs for the new tokens of one conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuw_layer.backends.protocols import Array
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.tensors.names import CACHE_POSITION, LAST_TOKEN, MASK
from npuw_layer.tensors.token_inputs import TokenInput


def fill_inputs(
    inputs: Mapping[str, Array],
    follow: Sequence[TokenInput],
    new: NewTokens,
    rows: KVRows,
    past: int,
) -> None:
    """Set the inputs: values in use first, zeros after them.

    Args:
        inputs: inputs of the model by name, for one conversation.
        follow: those that follow tokens.
        new: tokens that the model is about to read.
        rows: rows of the tokens before them.
        past: rows of the cache that the model reads.
    """
    used = len(new)
    for port in follow:
        port.fill(inputs[port.name], new.rows[port.name])
    if CACHE_POSITION in inputs:
        # Padding takes the last token's number, so that none is newer than that token.
        inputs[CACHE_POSITION][0, :used] = range(rows.tokens, rows.tokens + used)
        inputs[CACHE_POSITION][0, used:] = rows.tokens + used - 1
    if LAST_TOKEN in inputs:
        inputs[LAST_TOKEN][...] = 0
        inputs[LAST_TOKEN][0, 0, used - 1] = 1
    mask = inputs[MASK][0]
    mask[:past] = rows.columns(new.mask, past)
    mask[past : past + used] = new.mask[rows.tokens :]
    mask[past + used :] = 0
