"""Attention over paged caches in numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compiler_layer.dialects.ov import paged_attention as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.reference.meaning import Array, means, wide
from compiler_layer.reference.ov.reduce import softmax_of


@dataclass(frozen=True, slots=True)
class Subsequence:
    """A sequence: the range of its tokens, the number of earlier rows, and its blocks in order."""

    begin: int
    end: int
    past: int
    blocks: Array

    @property
    def rows(self) -> int:
        """Number of rows, including the new ones."""
        return self.past + self.end - self.begin


@means(ov.PagedAttentionExtension)
def paged_attention(op: ov.PagedAttentionExtension, *operands: Array) -> tuple[Array, ...]:
    """Write new rows of K and V into the caches, and attend.

    Raises:
        ValueError: an option is not supported, or the tables are inconsistent.
    """
    op.check()
    q, k, v, key_cache, value_cache = operands[:5]
    _, heads, block_rows, _ = key_cache.shape
    if value_cache.shape[:3] != key_cache.shape[:3]:
        raise ValueError(f"caches {list(key_cache.shape)} and {list(value_cache.shape)} differ")
    sequences = list(sequences_of(len(q), operands[5:9], key_cache.shape[0], block_rows))
    if int_value(op.write_kv_cache):
        for cache, rows in ((key_cache, k), (value_cache, v)):
            for each in sequences:
                _write(cache, rows[each.begin : each.end].reshape(-1, heads, cache.shape[3]), each)
    width = key_cache.shape[3]
    scale = float(operands[9].reshape(-1)[0]) if operands[9].size else width**-0.5
    window = int(operands[10].reshape(-1)[0]) if operands[10].size else 0
    queries = wide(q).reshape(len(q), heads, -1, width)
    slopes = operands[11].reshape(-1) if operands[11].size else np.zeros(1)
    slopes = np.broadcast_to(wide(slopes), math.prod(queries.shape[1:3])).reshape(heads, -1)
    y = np.zeros((*queries.shape[:3], value_cache.shape[3]), np.float32)
    for each in filter(lambda one: one.begin < one.end, sequences):
        keys, values = (wide(_gather(cache, each)) for cache in (key_cache, value_cache))
        own = slice(each.begin, each.end)
        for head in range(heads):  # one head at a time: the scores of all may not fit into memory
            group = queries[own, head].swapaxes(0, 1)
            how = scale, slopes[head], window
            y[own, head] = _attend(group, keys[head], values[head], *how).swapaxes(0, 1)
    nothing = np.zeros(0, q.dtype)
    return y.reshape(len(q), -1).astype(q.dtype, copy=False), nothing, nothing


def sequences_of(
    tokens: int, tables: tuple[Array, ...], blocks: int, block_rows: int
) -> Iterator[Subsequence]:
    """Read the tables of sequences and blocks.

    Args:
        tokens: number of new tokens of all sequences.
        tables: past_lens, subsequence_begins, block_indices and block_indices_begins.
        blocks: number of blocks of a cache.
        block_rows: number of rows of a block.

    Raises:
        ValueError: the tables are inconsistent, or contain blocks that do not exist.
    """
    past, begins, indices, block_begins = (table.reshape(-1).tolist() for table in tables)
    if len(begins) != len(past) + 1 or len(block_begins) != len(past) + 1:
        raise ValueError(
            f"{len(past)} past_lens need {len(past) + 1} subsequence_begins and "
            f"block_indices_begins, not {len(begins)} and {len(block_begins)}"
        )
    for name, ends, last in (
        ("subsequence_begins", begins, tokens),
        ("block_indices_begins", block_begins, len(indices)),
    ):
        if ends[0] != 0 or ends[-1] != last or ends != sorted(ends):
            raise ValueError(f"{name} {ends}: values must ascend from 0 to {last}")
    for number, before in enumerate(past):
        own = indices[block_begins[number] : block_begins[number + 1]]
        found = Subsequence(begins[number], begins[number + 1], before, np.array(own, np.int64))
        if before < 0 or found.rows > len(own) * block_rows:
            raise ValueError(
                f"sequence {number}: {before} stored and {found.end - found.begin} new rows do not "
                f"fit {len(own)} blocks of {block_rows}"
            )
        if any(not 0 <= block < blocks for block in own):
            raise ValueError(f"sequence {number} uses blocks {own}; the caches have {blocks}")
        yield found


def _write(cache: Array, rows: Array, sequence: Subsequence) -> None:
    """Store new rows, [tokens, heads, channels], at their places."""
    places: Array = np.arange(sequence.past, sequence.rows)
    size = cache.shape[2]
    cache[sequence.blocks[places // size], :, places % size] = rows


def _gather(cache: Array, sequence: Subsequence) -> Array:
    """Return all rows of a sequence, [heads, rows, channels]."""
    size = cache.shape[2]
    found = cache[sequence.blocks[: -(-sequence.rows // size)]].swapaxes(0, 1)
    return found.reshape(cache.shape[1], -1, cache.shape[3])[:, : sequence.rows]


def _attend(
    q: Array, keys: Array, values: Array, scale: float, slopes: Array, window: int
) -> Array:
    """Attend causally from q [heads, tokens, D], the last of the rows, to keys [rows, D]."""
    tokens, rows = int(q.shape[1]), len(keys)
    own: Array = np.arange(rows - tokens, rows)[:, None]
    every: Array = np.arange(rows)
    allowed = every <= own
    if window > 0:
        allowed &= every > own - window
    scores = np.matmul(q, keys.T) * np.float32(scale)
    if slopes.any():
        scores += slopes[:, None, None].astype(np.float32) * (every - own)
    weights = softmax_of(np.where(allowed, scores, np.float32(-1e30)), -1)
    return np.matmul(weights, values)
