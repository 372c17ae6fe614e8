"""Blocks of one conversation: all variables of a model side by side in one allocation.

All layers grow by the same tokens, so a block of tokens is one allocation for all layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from npuw_layer.backends.protocols import READ_PREFIX, Array, Device, Memory, TensorInfo
from npuw_layer.errors import PoolExhausted
from npuw_layer.llm.kv.row_layouts import by_layout
from npuw_layer.tensors.names import block_of, plain_variable


@dataclass(frozen=True, slots=True, eq=False)
class KVBlock:
    """A block of tokens in device memory.

    Attributes:
        memory: device memory of the block.
        stacks: for each group of variables of equal layout [variables, rows, heads, width]; views.
    """

    memory: Memory
    stacks: tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Place of a variable in every block: its stack, its index there, and its byte offset."""

    stack: int
    number: int
    offset: int


class BlockLayout:
    """Places of all variables in a block.

    Args:
        states: input of each variable for one complete block.
        rows: tokens per block.
    """

    def __init__(self, states: Sequence[TensorInfo], rows: int) -> None:
        self.rows = rows
        variables = [(block_of(info.name.removeprefix(READ_PREFIX)), info) for info in states]
        kinds = by_layout((name, info) for name, info in variables if name is not None)
        self.stacks: list[list[str]] = list(kinds.values())
        """Groups of variables of equal layout, by the names that programs use."""
        self.kinds = list(kinds)
        """Layout of each group."""
        self.places: dict[str, BlockPlace] = {}
        """Places by plain name."""
        self.nbytes = 0
        """Bytes of a block."""
        for stack, (kind, names) in enumerate(kinds.items()):
            pitch = kind.pitch(rows)
            for number, name in enumerate(names):
                offset = self.nbytes + number * pitch
                self.places[plain_variable(name)] = BlockPlace(stack, number, offset)
            self.nbytes += len(names) * pitch

    @property
    def largest(self) -> int:
        """Bytes of a block's largest tensor."""
        return max(kind.pitch(self.rows) for kind in self.kinds)

    def allocate(self, device: Device) -> KVBlock:
        """Allocate a zeroed block.

        Raises:
            DeviceError: device memory is exhausted.
        """
        memory = device.allocate(self.nbytes)
        stacks: list[Array] = []
        begin = 0
        for kind, names in zip(self.kinds, self.stacks, strict=True):
            stacks.append(kind.view(memory.data, begin, len(names), self.rows))
            begin += len(names) * kind.pitch(self.rows)
        return KVBlock(memory, tuple(stacks))


class BlockPool:
    """A stack of blocks, allocated in order and freed in reverse.

    Block n holds the rows from n times the block length on as long as it exists, so programs stay
    bound to it from one conversation to the next.

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
