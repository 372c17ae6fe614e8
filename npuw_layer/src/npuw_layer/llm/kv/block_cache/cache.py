"""Cache in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from npuw_layer.backends.protocols import Array, Device, Memory, Program, TensorInfo
from npuw_layer.llm.kv.block_cache.attachment import BlockAttachment, Blocks
from npuw_layer.llm.kv.block_cache.layout import BlockLayout, BlockPool
from npuw_layer.llm.kv.copies import RowCopy, copy_kvcache
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.llm.kv.kv_strategy import KVStrategy, Refresh


@dataclass(frozen=True, slots=True)
class _Span:
    """Rows inside one block, and their indices among the rows of a copy."""

    block: int
    inside: slice | Array
    which: slice | Array

    @property
    def target(self) -> int | Array:
        """Target in the block: the first row of a slice, or every row."""
        return self.inside.start if isinstance(self.inside, slice) else self.inside


class BlockKVCache(KVStrategy):
    """Blocks that hold the rows of all variables, as many as the tokens need.

    Rows never move: row n is in block n / length. A rewind keeps all blocks; a new conversation
    keeps the blocks that it is about to need.

    Args:
        device: device of the blocks.
        layout: layout of variables in a block.
        rows: capacity, and the token of each row.
        ahead: tokens beyond the stored ones for which programs are bound in advance.
    """

    def __init__(self, device: Device, layout: BlockLayout, rows: KVRows, ahead: int) -> None:
        super().__init__(rows)
        self._layout = layout
        capacity = -(-len(rows) // layout.rows)
        self._pool = BlockPool(partial(layout.allocate, device), capacity)
        self._dummy = device.allocate(layout.largest)
        self._blocks = Blocks(self._pool, layout, rows, self._dummy, ahead)

    @property
    def names(self) -> Sequence[str]:
        """Names of the variables."""
        return list(self._layout.places)

    @property
    def stacks(self) -> Sequence[Sequence[str]]:
        """Groups of variables of equal layout, by the names that programs use."""
        return self._layout.stacks

    @property
    def memories(self) -> Sequence[Memory]:
        """Device memory of the blocks, and of the dummy for absent ones."""
        blocks = (self._pool[number].memory for number in range(len(self._pool)))
        return [*blocks, self._dummy]

    @property
    def nbytes(self) -> int:
        """Bytes of device memory at present."""
        return len(self._pool) * self._layout.nbytes + self._layout.largest

    @property
    def most_bytes(self) -> int:
        """Bytes of device memory of a full cache."""
        return self._pool.capacity * self._layout.nbytes + self._layout.largest

    def attach(
        self, program: Program, inputs: Sequence[TensorInfo], past: int, first_row: int | None
    ) -> Refresh:
        """Bind a program to the cache; see ``KVStrategy``."""
        return BlockAttachment(self._blocks, program, inputs, past, first_row).refresh

    def make_room(self, count: int) -> None:
        """Allocate blocks for new tokens.

        Raises:
            DeviceError: device memory is exhausted.
        """
        rows = self.rows
        last = min(rows.tokens + count, rows.window) if rows.plain else rows.window
        self._pool.grow(self._blocks.count(last))

    def read(self, name: str) -> Array:
        """Return the stored rows of a variable in the order of their tokens; a copy."""
        self.settle()
        place = self._layout.places[name]
        used = range(self._blocks.count(self.rows.reach))
        parts = [self._pool[number].stacks[place.stack][place.number] for number in used]
        whole = np.concatenate([self._layout.kinds[place.stack].empty(), *parts])
        return whole[self.rows.order()]

    def write(self, name: str, values: Array) -> None:
        """Replace the stored rows of a variable, in the order of their tokens."""
        self.settle()
        place, rows = self._layout.places[name], self.rows.order()
        self._pool.grow(self._blocks.count(self.rows.reach))
        for span in self._scatter(rows):
            stack = self._pool[span.block].stacks[place.stack]
            stack[place.number, span.inside] = values[span.which]

    def between(self, begin: int, end: int) -> list[Array]:
        """Return the rows of a range of tokens; copies if they span several blocks."""
        self.settle()
        spans = list(self._cut(begin, end))
        found: list[Array] = []
        for stack in range(len(self._layout.stacks)):
            parts = [self._pool[span.block].stacks[stack][:, span.inside] for span in spans]
            found.append(parts[0] if len(parts) == 1 else np.concatenate(parts, 1))
        return found

    def replace(self, numbers: Array, rows: Mapping[str, Array]) -> None:
        """Replace all stored tokens; see ``KVStrategy``."""
        # First: a failure changes nothing.
        self._pool.grow(self._blocks.count(min(len(numbers), self.rows.window)))
        super().replace(numbers, rows)

    def reset(self, tokens: int = 1) -> None:
        """Forget all tokens; keep blocks for the given number of next tokens, and some more.

        Programs will be bound for all these blocks when the conversation continues.
        """
        super().reset(tokens)
        self._pool.trim(self._blocks.count(tokens + self._blocks.ahead))

    def _copy(self, present: Sequence[Array], plan: RowCopy) -> int:
        target, total = plan.target, 0
        one = isinstance(target, int)
        for span in self._cut(target, target + plan.rows) if one else self._scatter(target):
            rows = [stack[:, span.which] for stack in present]
            part = RowCopy(rows[0].shape[1], span.target)
            total += copy_kvcache(rows, self._pool[span.block].stacks, part)
        return total

    def _zero(self, rows: Array) -> None:
        for span in self._scatter(rows):
            if span.block < len(self._pool):  # a freed block comes back zeroed
                for stack in self._pool[span.block].stacks:
                    stack[:, span.inside] = 0

    def _cut(self, begin: int, end: int) -> Iterator[_Span]:
        """Cut consecutive rows at block boundaries."""
        length, row = self._layout.rows, begin
        while row < end:
            block, inside = divmod(row, length)
            count = min(end - row, length - inside)
            yield _Span(
                block, slice(inside, inside + count), slice(row - begin, row - begin + count)
            )
            row += count

    def _scatter(self, rows: Array) -> Iterator[_Span]:
        """Group rows by block."""
        blocks = rows // self._layout.rows
        for block in np.unique(blocks):
            which = np.flatnonzero(blocks == block)
            yield _Span(int(block), rows[which] % self._layout.rows, which)
