"""Blocks of memory: which there are, and what is given back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.errors import PoolExhausted
from npuw_layer.llm.kv.block_cache.layout import Block
from npuw_layer.llm.kv.block_cache.pool import BlockPool

CAPACITY = 6


class Counted:
    """Memory of the host that tells whether it was given back."""

    def __init__(self) -> None:
        self.data = np.zeros(8, np.uint8)
        self.alive = True

    def free(self) -> None:
        assert self.alive, "it is given back once"
        self.alive = False


def made() -> tuple[BlockPool, list[Counted]]:
    """A pool, and all memory that it ever took."""
    every: list[Counted] = []

    def allocate() -> Block:
        every.append(Counted())
        return Block(every[-1], ())

    return BlockPool(allocate, CAPACITY), every


@given(st.lists(st.tuples(st.booleans(), st.integers(0, CAPACITY)), max_size=30))
def test_blocks_are_a_stack(steps: list[tuple[bool, int]]) -> None:
    """The first ones stay what they are while others come and go."""
    pool, every = made()
    held: list[Block] = []
    for grows, count in steps:
        before, taken = list(held), len(every)
        if grows:
            pool.grow(count)
        else:
            pool.trim(count)
        held = [pool[number] for number in range(len(pool))]
        kept = min(len(before), len(held))
        assert held[:kept] == before[:kept], "who is bound to them stays so"
        assert len(held) == (max if grows else min)(len(before), count)
        assert len(every) - taken == max(len(held) - len(before), 0), "made only if it is needed"
        assert {id(block.memory) for block in held} == {id(m) for m in every if m.alive}
        assert len({id(block.memory) for block in held}) == len(held), "none is there twice"
        assert pool.find(len(held)) is None


def test_a_pool_says_that_it_is_exhausted() -> None:
    pool, every = made()
    with pytest.raises(PoolExhausted, match="needs 7 blocks of the KV cache, the pool has 6"):
        pool.grow(CAPACITY + 1)
    assert not every, "nothing was taken for what cannot be"
