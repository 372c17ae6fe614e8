"""Rows of a cache in blocks equal those of a contiguous cache, for any operations."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.protocols import READ_PREFIX, TensorInfo
from npuw_layer.llm.kv.block_cache.cache import BlockKVCache
from npuw_layer.llm.kv.block_cache.layout import BlockLayout
from npuw_layer.llm.kv.copies import RowCopy
from npuw_layer.llm.kv.kv_cache import KVCache
from npuw_layer.llm.kv.kv_rows import KVRows

TOTAL, BLOCK, SINKS, AHEAD = 29, 8, 2, 3
SHAPES = {"0.key": (2, 3), "0.value": (2, 3), "0.key.scale": (2, 1)}
TRANSPOSED = "1.value"


def states(rows: int, suffix: str) -> list[TensorInfo]:
    """Return three variables of two layouts, and a transposed one."""
    plain = [
        TensorInfo(f"{READ_PREFIX}{name}{suffix}", "f32", (1, rows, *row))
        for name, row in SHAPES.items()
    ]
    name = f"{READ_PREFIX}{TRANSPOSED}@transposed{suffix}"
    return [*plain, TensorInfo(name, "f32", (1, 2, 3, rows))]


class Both(RuleBasedStateMachine):
    """Two caches with the same operations."""

    slides = False

    def __init__(self) -> None:
        super().__init__()
        device = InterpreterDevice()
        window = TOTAL - 1 if self.slides else TOTAL
        piece, blocks = (KVRows(TOTAL, window, SINKS) for _ in range(2))
        self.whole = KVCache(device, states(TOTAL, ""), piece)
        layout = BlockLayout(states(BLOCK, "_block_0"), BLOCK)
        self.blocks = BlockKVCache(device, layout, blocks, AHEAD)
        self.both = (self.whole, self.blocks)
        self.draw = np.random.default_rng(1)

    def present(self, count: int) -> list[np.ndarray]:
        """Return new rows for each stack."""
        return [
            self.draw.standard_normal((len(names), count, *SHAPES.get(names[0], (2, 3)))).astype(
                np.float32
            )
            for names in self.whole.stacks
        ]

    @rule(count=st.integers(1, 12), settles=st.booleans())
    def update(self, count: int, settles: bool) -> None:
        if not self.slides and self.whole.rows.tokens + count > TOTAL:
            return
        new = self.present(count)
        for cache in self.both:
            cache.make_room(count)
            cache.update_kvcache_for(new, RowCopy(count, cache.rows.place(count)))
            if settles:
                cache.settle()

    @precondition(lambda self: self.whole.rows.plain)
    @rule(count=st.integers(1, 12))
    def restore(self, count: int) -> None:
        if self.whole.rows.tokens + count < TOTAL:
            rows = self.present(count)
            for cache in self.both:
                cache.restore(rows, count)

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        for cache in self.both:
            cache.truncate(int(share * cache.rows.tokens))

    @rule(tokens=st.integers(1, TOTAL))
    def reset(self, tokens: int) -> None:
        for cache in self.both:
            cache.reset(tokens)

    @rule(count=st.integers(1, TOTAL), gap=st.integers(0, 3))
    def replace(self, count: int, gap: int) -> None:
        numbers = np.r_[0 : min(count, 2), 2 + gap : gap + count][:count]
        new = self.present(count)
        rows = {
            name.removesuffix("@transposed"): values
            for names, stack in zip(self.whole.stacks, new, strict=True)
            for name, values in zip(names, stack, strict=True)
        }
        for cache in self.both:
            cache.replace(numbers, rows)

    @rule(name=st.sampled_from([*SHAPES, TRANSPOSED]))
    def write(self, name: str) -> None:
        values = self.draw.standard_normal(self.whole.read(name).shape).astype(np.float32)
        for cache in self.both:
            cache.write(name, values)

    @rule(rows=st.integers(0, TOTAL - 1))
    def prepare_past(self, rows: int) -> None:
        """Compare stored rows, and check that all others are zero."""
        for cache in self.both:
            cache.prepare_past(rows)
        for number, whole in enumerate(stack.rows for stack in self.whole._stacks):
            read = np.zeros_like(whole)
            for block in range(len(self.blocks._pool)):
                begin = block * BLOCK
                part = self.blocks._pool[block].stacks[number][:, : TOTAL - begin]
                read[:, begin : begin + part.shape[1]] = part
            assert np.array_equal(read[:, :rows], whole[:, :rows])

    @precondition(lambda self: self.whole.rows.plain and self.whole.rows.tokens)
    @rule(data=st.data())
    def between(self, data: st.DataObject) -> None:
        begin = data.draw(st.integers(0, self.whole.rows.tokens - 1))
        end = data.draw(st.integers(begin + 1, self.whole.rows.tokens))
        for ours, expected in zip(*(c.between(begin, end) for c in self.both), strict=True):
            assert np.array_equal(ours, expected)

    @invariant()
    def holds_the_same(self) -> None:
        assert self.whole.copied_bytes == self.blocks.copied_bytes
        assert self.whole.names == self.blocks.names
        for name in self.whole.names:
            assert np.array_equal(self.whole.read(name), self.blocks.read(name))

    @invariant()
    def takes_memory_for_its_tokens(self) -> None:
        block = self.blocks._layout.nbytes
        taken = self.blocks.nbytes - self.blocks._layout.largest
        assert taken >= block * (self.blocks.rows.reach / BLOCK)
        assert (
            self.blocks.nbytes <= self.blocks.most_bytes == 4 * block + self.blocks._layout.largest
        )


class Sliding(Both):
    """Caches in which new tokens replace old ones."""

    slides = True


PROFILE = settings(max_examples=15, stateful_step_count=25, deadline=None)
Both.TestCase.settings = Sliding.TestCase.settings = PROFILE
TestBoth, TestSliding = Both.TestCase, Sliding.TestCase
