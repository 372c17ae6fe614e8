"""Pool of blocks: allocation and release."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.errors import PoolExhausted
from npuw_layer.llm.kv.block_cache.layout import BlockPool, KVBlock

CAPACITY = 6


class Counted:
    """Host memory that records its release."""

    def __init__(self) -> None:
        self.data = np.zeros(8, np.uint8)
        self.alive = True

    def free(self) -> None:
        assert self.alive, "memory is freed twice"
        self.alive = False


def made() -> tuple[BlockPool, list[Counted]]:
    """Return a pool, and all memory that it has allocated."""
    every: list[Counted] = []

    def allocate() -> KVBlock:
        every.append(Counted())
        return KVBlock(every[-1], ())

    return BlockPool(allocate, CAPACITY), every


@given(st.lists(st.tuples(st.booleans(), st.integers(0, CAPACITY)), max_size=30))
def test_blocks_are_a_stack(steps: list[tuple[bool, int]]) -> None:
    """The first blocks stay unchanged while others are allocated and freed."""
    pool, every = made()
    held: list[KVBlock] = []
    for grows, count in steps:
        before, taken = list(held), len(every)
        if grows:
            pool.grow(count)
        else:
            pool.trim(count)
        held = [pool[number] for number in range(len(pool))]
        kept = min(len(before), len(held))
        assert held[:kept] == before[:kept], "bindings stay valid"
        assert len(held) == (max if grows else min)(len(before), count)
        assert len(every) - taken == max(len(held) - len(before), 0), "allocated only if needed"
        assert {id(block.memory) for block in held} == {id(m) for m in every if m.alive}
        assert len({id(block.memory) for block in held}) == len(held), "no block is listed twice"
        assert pool.find(len(held)) is None


def test_the_error_for_an_exhausted_pool_states_its_size() -> None:
    pool, every = made()
    with pytest.raises(PoolExhausted, match="needs 7 blocks of the KV cache, the pool has 6"):
        pool.grow(CAPACITY + 1)
    assert not every, "an impossible request allocates nothing"
