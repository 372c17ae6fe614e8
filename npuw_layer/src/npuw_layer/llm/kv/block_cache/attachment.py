"""Bindings of a program that reads a cache in blocks.

Rebinding any number of inputs costs the device a relocation of the complete program: the time of
several steps. So inputs are rebound rarely, and then for all tokens that may come soon. A bound
block that is not needed stays bound while it exists: no token attends to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, Memory, Program, TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.llm.kv.block_cache.layout import BlockLayout, BlockPool, KVBlock
from npuw_layer.llm.kv.kv_layout import KVLayout
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.tensors.names import plain_variable


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of a cache, as its attachments share them.

    Attributes:
        pool: the blocks.
        layout: places of variables in each block.
        rows: rows in use.
        dummy: zeros, read in place of a missing block.
        ahead: tokens beyond the stored ones for which blocks are bound in advance.
    """

    pool: BlockPool
    layout: BlockLayout
    rows: KVRows
    dummy: Memory
    ahead: int

    def count(self, rows: int) -> int:
        """Return the number of blocks that hold a number of rows."""
        return -(-rows // self.layout.rows)


_Port = tuple[str, int]
"""Name of an input or output, and its offset in its block."""


class _Unbound:
    """Placeholder for a binding that does not exist yet or is uncertain."""


class BlockAttachment:
    """Bindings of one program; ``refresh`` is called before each run.

    Args:
        blocks: blocks to bind to.
        program: program whose other tensors are bound.
        inputs: all its inputs.
        past: rows of the cache that it reads.
        first_row: first row that it writes, the first of a block; None if it writes none.
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
        """Ports of each block."""
        self._read: list[KVBlock | _Unbound | None] = [_Unbound()] * len(self._inputs)
        """Block bound for each block number; None stands for the dummy."""
        self._outputs: Sequence[_Port] = ()
        self._target = 0
        """Number of the block to write."""
        self._written: KVBlock | None = None
        if first_row is not None:
            self._target = first_row // blocks.layout.rows
            self._outputs = _outputs(blocks.layout)

    def refresh(self) -> None:
        """Bind blocks that are new or replace others."""
        pool = self._blocks.pool
        if self._outputs:
            pool.grow(self._target + 1)
            if pool[self._target] is not self._written:
                self._written = None  # until all its outputs are bound
                self._bind(self._outputs, pool[self._target])
                self._written = pool[self._target]
        if self._is_current():
            return
        if not self._outputs:
            with suppress(DeviceError):  # blocks for the next tokens, if memory suffices
                pool.grow(min(self._needed(self._blocks.ahead), pool.capacity))
        found = [pool.find(number) for number in range(len(self._inputs))]
        for number, (ports, block) in enumerate(zip(self._inputs, found, strict=True)):
            if block is not self._read[number]:
                self._read[number] = _Unbound()  # until all its inputs are bound
                self._bind(ports, block)
                self._read[number] = block

    def _is_current(self) -> bool:
        """Return whether all needed blocks are bound, and no freed ones."""
        pool, needed = self._blocks.pool, self._needed(0)
        return all(
            block is pool.find(number) or (block is None and number >= needed)
            for number, block in enumerate(self._read)
        )

    def _needed(self, more: int) -> int:
        """Return the number of blocks that are read after a number of further tokens."""
        return self._blocks.count(min(self._blocks.rows.reach + more, self._past))

    def _bind(self, ports: Sequence[_Port], block: KVBlock | None) -> None:
        for name, offset in ports:
            if block is None:
                self._program.bind(name, self._blocks.dummy, 0)
            else:
                self._program.bind(name, block.memory, offset)


def _inputs(layout: BlockLayout, inputs: Sequence[TensorInfo], past: int) -> list[list[_Port]]:
    """Return the inputs of each block of the past."""
    there = {info.name for info in inputs}
    spans = KVLayout(block=layout.rows).spans(past)
    return [
        [
            (name, layout.places[plain_variable(variable)].offset)
            for stack in layout.stacks
            for variable in stack
            if (name := READ_PREFIX + span.of(variable)) in there
        ]
        for span in spans
    ]


def _outputs(layout: BlockLayout) -> list[_Port]:
    """Return the outputs, for new rows that begin a block."""
    return [(ASSIGN_PREFIX + name, place.offset) for name, place in layout.places.items()]
