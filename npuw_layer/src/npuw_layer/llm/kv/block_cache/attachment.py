"""A program that reads a cache in blocks, and the blocks that its inputs are bound to.

To bind inputs anew costs the device a relocation of the whole program, however many they are: some
steps' time. So it is done as seldom as can be, and then for as many tokens as may come soon. What
is bound and not needed stays bound while it lives: nobody attends to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, Memory, Program, TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.llm.kv.block_cache.layout import Block, BlockLayout
from npuw_layer.llm.kv.block_cache.pool import BlockPool
from npuw_layer.llm.kv.kv_layout import KVLayout
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.tensors.names import plain_variable


@dataclass(frozen=True, slots=True)
class Blocks:
    """What attachments share: the blocks, how they lie, and which rows of them are in use.

    Attributes:
        pool: the blocks.
        layout: where variables are in each.
        rows: which are in use.
        dummy: what is read where there is no block; zeros.
        ahead: tokens that blocks are bound for at once, beyond those that are stored.
    """

    pool: BlockPool
    layout: BlockLayout
    rows: KVRows
    dummy: Memory
    ahead: int

    def count(self, rows: int) -> int:
        """How many blocks so many rows take."""
        return -(-rows // self.layout.rows)


@dataclass(frozen=True, slots=True)
class _Port:
    """An input or output, and where it lies in its block."""

    name: str
    offset: int


class _Unbound:
    """Stands for what inputs are bound to while nobody knows, or before they are."""


class BlockAttachment:
    """A program's bindings; satisfies ``kv_strategy.Attachment``.

    Args:
        blocks: what it is bound to.
        program: bound to all else.
        inputs: its own, others among them.
        past: rows that it reads.
        first_row: from which on it writes its new rows, the first of a block; or None.
    """

    def __init__(
        self,
        blocks: Blocks,
        program: Program,
        inputs: Sequence[TensorInfo],
        past: int,
        first_row: int | None,
    ) -> None:
        self._blocks = blocks
        self._program = program
        self._past = past
        self._inputs = _inputs(blocks.layout, inputs, past)
        """Of each block."""
        self._read: list[Block | _Unbound | None] = [_Unbound()] * len(self._inputs)
        """Blocks that the inputs are bound to; None is the dummy."""
        self._outputs: Sequence[_Port] = ()
        self._target = 0
        """The block that is written to."""
        self._written: Block | None = None
        if first_row is not None:
            self._target = first_row // blocks.layout.rows
            self._outputs = _outputs(blocks.layout)

    def refresh(self) -> None:
        """Bind blocks that came, or take the place of others."""
        pool = self._blocks.pool
        if self._outputs:
            pool.grow(self._target + 1)
            if pool[self._target] is not self._written:
                self._written = None  # until all of it is bound
                self._bind(self._outputs, pool[self._target])
                self._written = pool[self._target]
        if self._is_current():
            return
        if not self._outputs:
            self._look_ahead()
        found = [pool.find(number) for number in range(len(self._inputs))]
        for number, (ports, block) in enumerate(zip(self._inputs, found, strict=True)):
            if block is not self._read[number]:
                self._read[number] = _Unbound()  # until all of it is bound
                self._bind(ports, block)
                self._read[number] = block

    def _is_current(self) -> bool:
        """Whether all that is read is bound, and nothing that is gone."""
        pool, needed = self._blocks.pool, self._needed(0)
        return all(
            block is pool.find(number) or (block is None and number >= needed)
            for number, block in enumerate(self._read)
        )

    def _look_ahead(self) -> None:
        """Get blocks for tokens that come next, if there is memory for them."""
        pool = self._blocks.pool
        with suppress(DeviceError):
            pool.grow(min(self._needed(self._blocks.ahead), pool.capacity))

    def _needed(self, more: int) -> int:
        """How many blocks are read with so many more tokens."""
        return self._blocks.count(min(self._blocks.rows.reach + more, self._past))

    def _bind(self, ports: Sequence[_Port], block: Block | None) -> None:
        for port in ports:
            if block is None:
                self._program.bind(port.name, self._blocks.dummy, 0)
            else:
                self._program.bind(port.name, block.memory, port.offset)


def _inputs(layout: BlockLayout, inputs: Sequence[TensorInfo], past: int) -> list[list[_Port]]:
    """The inputs of each block of the past."""
    there = {info.name for info in inputs}
    pieces = KVLayout(block=layout.rows).pieces(past)
    return [
        [
            _Port(name, layout.places[plain_variable(variable)].offset)
            for stack in layout.stacks
            for variable in stack
            if (name := READ_PREFIX + piece.of(variable)) in there
        ]
        for piece in pieces
    ]


def _outputs(layout: BlockLayout) -> list[_Port]:
    """The outputs, whose rows begin with those of a block."""
    places = layout.places.items()
    return [_Port(ASSIGN_PREFIX + name, place.offset) for name, place in places]
