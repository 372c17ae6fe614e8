"""Group-query attention with its cache in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import group_query_attention as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.reference.meaning import Array, means, wide
from compiler_layer.reference.ov.reduce import softmax_of


@means(ov.GroupQueryAttention)
def group_query_attention(op: ov.GroupQueryAttention, *operands: Array) -> tuple[Array, ...]:
    """Store new rows at their places, and attend from each token to all rows up to its own."""
    q, k, v, *caches = (wide(each) for each in operands[:5])
    batch, heads, tokens, width = map(int, q.shape)
    first = operands[5].reshape(-1)[:batch].astype(np.int64) + 1 - tokens
    places: Array = first[:, None] + np.arange(tokens)
    if int_value(op.do_rotary):
        given = op.other("position_ids") is not None
        turns: Array = operands[9] if given else np.maximum(places, 0)
        cos, sin = (wide(each)[turns][:, None] for each in operands[7:9])
        q, k = (_turned(op, x, cos, sin) for x in (q, k))
    present = [_stored(cache, rows, places) for cache, rows in zip(caches, (k, v), strict=True)]
    every_key, every_value = (np.repeat(x, heads // k.shape[1], 1) for x in present)
    rows: Array = np.arange(int(every_key.shape[2]))
    own: Array = np.maximum(places, 0)[:, None, :, None]  # padding attends to the first row
    allowed: Array = rows <= own
    if op.window is not None:
        allowed &= rows > own - op.window
    scores = np.matmul(q, every_key.swapaxes(-1, -2)) * np.float32(op.factor)
    scores = np.where(allowed, scores, np.float32(-1e30))
    if op.attends_to_nothing:
        given = op.other("head_sink") is not None
        sinks = wide(operands[11]).reshape(-1, 1, 1) if given else np.zeros(1, np.float32)
        nothing = np.broadcast_to(sinks, (*scores.shape[:-1], 1))
        weights = softmax_of(np.concatenate([scores, nothing], -1), -1)[..., :-1]
    else:
        weights = softmax_of(scores, -1)
    y = np.matmul(weights, every_value).transpose(0, 2, 1, 3).reshape(batch, tokens, heads * width)
    kinds = (operands[0].dtype, operands[3].dtype, operands[4].dtype)
    return tuple(x.astype(kind, copy=False) for x, kind in zip((y, *present), kinds, strict=True))


def _stored(cache: Array, rows: Array, places: Array) -> Array:
    """Return the cache with new rows; padding rows, at places below 0, are not stored."""
    found = cache.copy()
    for number, own in enumerate(places):
        used = own >= 0
        found[number][:, own[used]] = rows[number][:, used]
    return found


def _turned(op: ov.GroupQueryAttention, x: Array, cos: Array, sin: Array) -> Array:
    """Rotate pairs of the first channels, as many as the tables have angles."""
    turned = 2 * cos.shape[-1]
    pairs, rest = x[..., :turned], x[..., turned:]
    if int_value(op.rotary_interleaved):
        a, b = pairs[..., ::2], pairs[..., 1::2]
        both = np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(pairs.shape)
    else:
        a, b = np.split(pairs, 2, -1)
        both = np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
    return np.concatenate([both, rest], -1)
