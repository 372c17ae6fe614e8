"""Random numbers in numpy: the generator Philox 4x32, with OpenVINO's counters.

Source: the specification of RandomUniform-8, and Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3" (2011).
"""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import random_uniform as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.reference.meaning import Array, means

_ROUNDS = 10
_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@means(ov.RandomUniform)
def random_uniform(op: ov.RandomUniform, shape: Array, low: Array, high: Array) -> Array:
    """Draw as in OpenVINO's first inference of a request: each run restarts the generator."""
    dims = [int(d) for d in shape.reshape(-1)]
    seeds = int_value(op.global_seed), int_value(op.op_seed)
    below, above = low.reshape(()), high.reshape(())
    if not any(seeds):
        drawn = np.random.default_rng().random(dims, np.float32)
    else:
        drawn = _floats(_philox(int(np.prod(dims, dtype=np.int64)), *seeds)).reshape(dims)
    return (drawn * (above - below) + below).astype(np.float32)


def _philox(count: int, key: int, counter: int) -> Array:
    """Return ``count`` random 32-bit integers."""
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    a, b = blocks & _LOW, blocks >> _HALF
    c = np.full_like(a, counter & 0xFFFFFFFF)
    d = np.full_like(a, counter >> 32 & 0xFFFFFFFF)
    keys = [key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF]
    for _ in range(_ROUNDS):
        first, second = a * _FACTORS[0], c * _FACTORS[1]
        a, b = (second >> _HALF) ^ b ^ np.uint64(keys[0]), second & _LOW
        c, d = (first >> _HALF) ^ d ^ np.uint64(keys[1]), first & _LOW
        keys = [k + step & 0xFFFFFFFF for k, step in zip(keys, _STEPS, strict=True)]
    return np.stack([a, b, c, d], 1).reshape(-1)[:count].astype(np.uint32)


def _floats(bits: Array) -> Array:
    """Convert the lowest 23 bits to floats in [0, 1)."""
    return (bits & np.uint32(0x7FFFFF) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)
