"""Pooling of the tokens' hidden states to an embedding of a text.

Source: openvino_genai's postprocessing of embedding models (``text_embedding_utils``).
"""

from __future__ import annotations

import numpy as np

from genai_layer.runtime import Array
from genai_layer.texts.config import PoolingType

_LEAST = 1e-12
"""Smallest divisor."""


def pool(hidden: Array, mask: Array, kind: PoolingType, left: bool) -> Array:
    """Reduce each text's hidden states to one vector.

    Args:
        hidden: f32 [texts, tokens, channels].
        mask: i64 [texts, tokens]; 1 at tokens of the text.
        kind: the reduction.
        left: True if padding precedes the texts: the last token of each is then the row's last.

    Returns:
        f32 [texts, channels].
    """
    if kind is PoolingType.CLS:
        return np.array(hidden[:, 0])
    if kind is PoolingType.LAST_TOKEN:
        last = np.full(len(mask), mask.shape[1] - 1) if left else mask.sum(1) - 1
        return hidden[np.arange(len(hidden)), last]
    counted = mask[..., None].astype(hidden.dtype)
    found = (hidden * counted).sum(1) / np.maximum(counted.sum(1), _LEAST)
    return found.astype(hidden.dtype)


def normalized(vectors: Array) -> Array:
    """Scale vectors [texts, channels] to length 1; zero vectors are unchanged."""
    squares = (vectors * vectors).sum(1, keepdims=True)
    return (vectors / np.sqrt(np.maximum(squares, _LEAST))).astype(vectors.dtype)
