"""Blocks of one conversation, allocated in order and freed in reverse.

Block n holds the rows from n times the block length on as long as it exists, so programs stay bound
to it from one conversation to the next.
"""

from __future__ import annotations

from collections.abc import Callable

from npuw_layer.errors import PoolExhausted
from npuw_layer.llm.kv.block_cache.layout import KVBlock


class BlockPool:
    """A stack of blocks.

    Args:
        allocate: allocates a zeroed block.
        capacity: the maximum number of blocks.
    """

    def __init__(self, allocate: Callable[[], KVBlock], capacity: int) -> None:
        self._allocate = allocate
        self._blocks: list[KVBlock] = []
        self.capacity = capacity

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, number: int) -> KVBlock:
        return self._blocks[number]

    def find(self, number: int) -> KVBlock | None:
        """Return a block; None if it is not allocated."""
        return self._blocks[number] if number < len(self._blocks) else None

    def grow(self, count: int) -> None:
        """Allocate blocks until there are at least ``count``.

        Raises:
            PoolExhausted: the count exceeds the capacity.
            DeviceError: device memory is exhausted; blocks allocated so far stay.
        """
        if count > self.capacity:
            raise PoolExhausted(count, self.capacity)
        while len(self._blocks) < count:
            self._blocks.append(self._allocate())

    def trim(self, count: int) -> None:
        """Free all blocks but the first ``count``."""
        while len(self._blocks) > count:
            self._blocks.pop().memory.free()
