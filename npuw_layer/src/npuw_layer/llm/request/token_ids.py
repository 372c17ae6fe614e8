"""Check of token ids; an id outside the vocabulary would be looked up outside the embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.tensors.names import IDS


def check_ids(ids: Array, vocabulary: int | None, place: Sequence[int] = ()) -> None:
    """Check that token ids are in the vocabulary.

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
