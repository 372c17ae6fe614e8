"""Token ids are numbers of a vocabulary; others would be looked up where no embeddings are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.tensors.names import IDS


def check_ids(ids: Array, vocabulary: int | None, place: Sequence[int] = ()) -> None:
    """See that token ids are of the vocabulary.

    Args:
        ids: i64, of any shape.
        vocabulary: how many there are; None if that is not known.
        place: which part of the input they are, as its first indices.

    Raises:
        TensorError: one is not.
    """
    if vocabulary is None or not ids.size:
        return
    if ids.min() >= 0 and ids.max() < vocabulary:
        return
    index = tuple(np.argwhere((ids < 0) | (ids >= vocabulary))[0].tolist())
    raise TensorError(
        f"{IDS}{[*place, *index]} is {ids[index]}, which is no token: the model's vocabulary has "
        f"{vocabulary}, from 0 to {vocabulary - 1}"
    )
