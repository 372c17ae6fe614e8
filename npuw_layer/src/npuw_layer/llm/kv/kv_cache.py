"""K and V caches of one conversation in device memory, one buffer per variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Array,
    Device,
    Memory,
    Program,
    TensorInfo,
)
from npuw_layer.llm.kv.copies import RowCopy, copy_kvcache
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.llm.kv.kv_strategy import KVStrategy, Refresh
from npuw_layer.llm.kv.row_layouts import by_layout, is_cache_input
from npuw_layer.tensors.names import plain_variable


@dataclass(frozen=True, slots=True)
class _Stack:
    """Buffers of variables of equal layout, side by side.

    Attributes:
        names: the variables, by the names that programs use.
        memory: device memory of the buffers.
        rows: [variables, rows, heads, width]; a view, for any layout in memory.
    """

    names: tuple[str, ...]
    memory: Memory
    rows: Array


class KVCache(KVStrategy):
    """One buffer per variable, as long as the largest variant.

    Every static model reads its past from the beginning of these buffers. Rows are stored token by
    token, so a shorter past is a prefix of a longer one. Transposed variables are stored as [1,
    heads, width, rows], and static models read the beginning of each channel.

    Args:
        device: device of the buffers.
        states: inputs of the variables in the model with the longest past.
        rows: number of rows, and the token of each.
    """

    def __init__(self, device: Device, states: Sequence[TensorInfo], rows: KVRows) -> None:
        super().__init__(rows)
        kinds = by_layout((info.name.removeprefix(READ_PREFIX), info) for info in states)
        self._stacks: list[_Stack] = []
        for kind, names in kinds.items():
            memory = device.allocate(len(names) * kind.pitch(len(rows)))
            view = kind.view(memory.data, 0, len(names), len(rows))
            self._stacks.append(_Stack(tuple(names), memory, view))
        self._places = {
            plain_variable(name): (stack, number)
            for stack in self._stacks
            for number, name in enumerate(stack.names)
        }

    @property
    def names(self) -> Sequence[str]:
        """Names of the variables."""
        return list(self._places)

    @property
    def stacks(self) -> Sequence[Sequence[str]]:
        """Groups of variables of equal layout by the programs' names, in buffer order."""
        return [stack.names for stack in self._stacks]

    @property
    def memories(self) -> Sequence[Memory]:
        """Device memory of the buffers."""
        return [stack.memory for stack in self._stacks]

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return sum(memory.data.size for memory in self.memories)

    def attach(
        self, program: Program, inputs: Sequence[TensorInfo], past: int, first_row: int | None
    ) -> Refresh:
        """Bind a program to the cache, whose buffers never move; see ``KVStrategy``."""
        del past  # the inputs' shapes have the number of rows
        for info in inputs:
            if is_cache_input(info):
                name = plain_variable(info.name.removeprefix(READ_PREFIX))
                stack, number = self._places[name]
                program.bind(info.name, stack.memory, number * stack.rows.strides[0])
        if first_row is not None:
            for name, (stack, number) in self._places.items():
                offset = number * stack.rows.strides[0] + first_row * stack.rows.strides[1]
                program.bind(ASSIGN_PREFIX + name, stack.memory, offset)
        return lambda: None

    def read(self, name: str) -> Array:
        """Return the stored rows of a variable in token order, [tokens, heads, width].

        A view, unless the cache has slid.
        """
        self.settle()
        stack, number = self._places[name]
        return stack.rows[number, self._used()]

    def between(self, begin: int, end: int) -> list[Array]:
        """Return the rows of a range of tokens, [variables, tokens, heads, width] each.

        One view for each of ``stacks``; the cache has not slid.
        """
        self.settle()
        return [stack.rows[:, begin:end] for stack in self._stacks]

    def write(self, name: str, values: Array) -> None:
        """Replace the stored rows of a variable, in the order of their tokens."""
        self.settle()
        stack, number = self._places[name]
        stack.rows[number, self._used()] = values

    def _used(self) -> slice | Array:
        """Return the rows in use, in the order of their tokens."""
        return slice(self.rows.tokens) if self.rows.plain else self.rows.order()

    def _copy(self, present: Sequence[Array], plan: RowCopy) -> int:
        return copy_kvcache(present, [stack.rows for stack in self._stacks], plan)

    def _zero(self, rows: Array) -> None:
        first, last = int(rows[0]), int(rows[-1])
        solid = last - first + 1 == len(rows)
        for stack in self._stacks:
            stack.rows[:, slice(first, last + 1) if solid else rows] = 0
