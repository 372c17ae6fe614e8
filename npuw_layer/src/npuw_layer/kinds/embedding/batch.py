"""Texts of an inference: the rows of a batch, read one by one.

Source: NPUW's batched element, which NPUW_TEXT_EMBED and NPUW_TEXT_RERANK enable: inputs
have one row per text, or one row common to all texts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.kinds.embedding.reading import Text
from npuw_layer.tensors.names import IDS, MASK, POSITIONS
from npuw_layer.tensors.token_inputs import check_ids
from npuw_layer.traits.images.trait import TOKEN_TYPES


def texts_of(
    values: Mapping[str, Array], counts_text: bool, vocabulary: int | None = None
) -> list[Text]:
    """Split a batch into its texts, without masked-out tokens at the end.

    Args:
        values: input_ids and attention_mask [texts, n], perhaps token_type_ids and position_ids.
        counts_text: whether default positions count only unmasked tokens, as callers of language
            models expect; otherwise they count all tokens, as in models without position inputs.
        vocabulary: number of token ids; None if unknown.

    Raises:
        TensorError: an input is missing or does not fit the others, or an id is out of range.
    """
    for name in (IDS, MASK):
        if name not in values:
            raise TensorError(f"inputs are missing: {name}")
    for name, array in values.items():
        if array.dtype != np.int64 or array.ndim != 2:
            raise TensorError(f"{name} is {array.dtype} {list(array.shape)}, not i64 [texts, n]")
    texts = max(len(array) for array in values.values())
    tokens = values[IDS].shape[1]
    for name, array in values.items():
        if len(array) not in (1, texts) or array.shape[1] != tokens or not array.size:
            raise TensorError(
                f"{name} is {list(array.shape)}; set [{texts}, {tokens}], or one row common to all "
                "texts"
            )
    rows = {name: np.broadcast_to(array, (texts, tokens)) for name, array in values.items()}
    found = [
        _text({name: array[n] for name, array in rows.items()}, n, counts_text)
        for n in range(texts)
    ]
    for n, text in enumerate(found):
        check_ids(text.ids, vocabulary, (n,))
    return found


def _text(row: Mapping[str, Array], number: int, counts_text: bool) -> Text:
    mask = row[MASK] != 0
    if not mask.any():
        raise TensorError(f"attention_mask: all tokens of text {number} are masked out")
    end = int(np.flatnonzero(mask)[-1]) + 1
    positions = np.maximum(mask.cumsum() - 1, 0) if counts_text else np.arange(len(mask))
    return Text(
        row[IDS][:end],
        mask[:end].astype(np.int64),
        row.get(POSITIONS, positions)[:end],
        row.get(TOKEN_TYPES, np.zeros_like(row[IDS]))[:end],
    )
