"""The blocks of one conversation: taken one after the other, the last one given back first.

Block n has the rows from n times its length on, as long as it lives: whoever is bound to it stays
so, from one conversation to the next.
"""

from __future__ import annotations

from collections.abc import Callable

from npuw_layer.errors import PoolExhausted
from npuw_layer.llm.kv.block_cache.layout import Block


class BlockPool:
    """A stack of blocks.

    Args:
        allocate: makes one, zeroed.
        capacity: the most that there may be.
    """

    def __init__(self, allocate: Callable[[], Block], capacity: int) -> None:
        self._allocate = allocate
        self._blocks: list[Block] = []
        self.capacity = capacity

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, number: int) -> Block:
        return self._blocks[number]

    def find(self, number: int) -> Block | None:
        """A block, if there is one."""
        return self._blocks[number] if number < len(self._blocks) else None

    def grow(self, count: int) -> None:
        """See that there are so many, at least.

        Raises:
            PoolExhausted: there may not be so many.
            DeviceError: there is no memory left; those that were made stay.
        """
        if count > self.capacity:
            raise PoolExhausted(count, self.capacity)
        while len(self._blocks) < count:
            self._blocks.append(self._allocate())

    def trim(self, count: int) -> None:
        """Give memory back, of all but the first."""
        while len(self._blocks) > count:
            self._blocks.pop().memory.free()
