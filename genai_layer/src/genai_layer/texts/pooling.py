"""Pooling: reduction of the tokens' hidden states to an embedding of a text.

Names of modes are those of sentence-transformers' Pooling.

Source: openvino_genai's postprocessing of embedding models (``text_embedding_utils``);
docs/reference/genai.md#files-of-sentence-transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from genai_layer.runtime import Array
from genai_layer.texts.config import PoolingType

_LEAST = 1e-12
"""Smallest divisor."""


def pool(hidden: Array, mask: Array, modes: Sequence[str]) -> Array:
    """Reduce each text's hidden states to one vector.

    Args:
        hidden: f32 [texts, tokens, channels].
        mask: i64 [texts, tokens]; 1 at tokens of the text, of which there is one at least.
        modes: keys of ``MODES``; their vectors are joined in this order.

    Returns:
        f32 [texts, channels · modes].
    """
    vectors = [MODES[mode](hidden, mask) for mode in modes]
    return np.concatenate(vectors, axis=1).astype(hidden.dtype)


def normalized(vectors: Array) -> Array:
    """Scale vectors [texts, channels] to length 1; zero vectors are unchanged."""
    squares = (vectors * vectors).sum(1, keepdims=True)
    return (vectors / np.sqrt(np.maximum(squares, _LEAST))).astype(vectors.dtype)


def modes_of(kind: PoolingType) -> tuple[str, ...]:
    """Return the modes of openvino_genai's pooling."""
    return (_NAMES[kind],)


_NAMES = {
    PoolingType.CLS: "cls",
    PoolingType.MEAN: "mean",
    PoolingType.LAST_TOKEN: "lasttoken",
}


def _first(hidden: Array, mask: Array) -> Array:
    return hidden[np.arange(len(hidden)), mask.argmax(1)]


def _last(hidden: Array, mask: Array) -> Array:
    return _first(hidden[:, ::-1], mask[:, ::-1])


def _greatest(hidden: Array, mask: Array) -> Array:
    return np.where(mask[..., None] == 1, hidden, -np.inf).max(1)


def _sum(hidden: Array, weights: Array) -> Array:
    return (hidden * weights[..., None].astype(hidden.dtype)).sum(1)


def _mean(hidden: Array, weights: Array) -> Array:
    return _sum(hidden, weights) / weights.sum(1, keepdims=True)


def _mean_by_root(hidden: Array, mask: Array) -> Array:
    return _sum(hidden, mask) / np.sqrt(mask.sum(1, keepdims=True))


def _weighted_mean(hidden: Array, mask: Array) -> Array:
    return _mean(hidden, mask * mask.cumsum(1))


MODES: Mapping[str, Callable[[Array, Array], Array]] = {
    "cls": _first,
    "max": _greatest,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
"""Reductions of hidden states f32 [texts, tokens, channels] by a mask, in the order of joining."""
