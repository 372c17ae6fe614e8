"""K and V caches of one conversation in device memory, one buffer per variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from npuw_layer.llm.kv.kv_strategy import Attachment
from npuw_layer.llm.kv.row_layouts import RowLayout, by_layout, is_cache_input
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


class _Bound:
    """Bindings to buffers that never move; implements ``kv_strategy.Attachment``."""

    def refresh(self) -> None:
        """Do nothing: no buffer has moved."""


class KVCache:
    """One buffer per variable, as long as the largest variant; implements ``KVStrategy``.

    Every static model reads its past from the beginning of these buffers. Rows are stored token by
    token, so a shorter past is a prefix of a longer one. Transposed variables are stored as [1,
    heads, width, rows], and static models read the beginning of each channel.

    Args:
        device: device of the buffers.
        states: inputs of the variables in the model with the longest past.
        rows: number of rows, and the token of each.
    """

    def __init__(self, device: Device, states: Sequence[TensorInfo], rows: KVRows) -> None:
        self.rows = rows
        """Rows in use, and their tokens."""
        self.copied_bytes = 0
        """Bytes that the host has copied into the cache since the last reset."""
        self._pending: tuple[Sequence[Array], RowCopy] | None = None
        """New rows, to be copied before they are read."""
        kinds = by_layout((info.name.removeprefix(READ_PREFIX), info) for info in states)
        self._stacks = [_allocate(device, names, kind, len(rows)) for kind, names in kinds.items()]
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

    @property
    def most_bytes(self) -> int:
        """Bytes of device memory of a full cache: all is allocated from the start."""
        return self.nbytes

    def attach(
        self, program: Program, inputs: Sequence[TensorInfo], past: int, first_row: int | None
    ) -> Attachment:
        """Bind a program to the cache; see ``KVStrategy``."""
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
        return _Bound()

    def make_room(self, count: int) -> None:
        """Do nothing: memory for all tokens is allocated."""

    def read(self, name: str) -> Array:
        """Return the stored rows of a variable in token order, [tokens, heads, width].

        A view, unless the cache has slid.
        """
        self.settle()
        stack, number = self._places[name]
        rows = stack.rows[number]
        return rows[: self.rows.tokens] if self.rows.plain else rows[self.rows.order()]

    def between(self, begin: int, end: int) -> list[Array]:
        """Return the rows of a range of tokens, [variables, tokens, heads, width] each.

        One view for each of ``stacks``; the cache has not slid.
        """
        self.settle()
        return [stack.rows[:, begin:end] for stack in self._stacks]

    def restore(self, rows: Sequence[Array], tokens: int) -> None:
        """Append rows that ``between`` returned."""
        self.settle()
        self.rows.expect(tokens)
        plan = RowCopy(tokens, self.rows.tokens)
        copy_kvcache(rows, [stack.rows for stack in self._stacks], plan)
        self.rows.append(tokens)

    def replace(self, numbers: Array, rows: Mapping[str, Array]) -> None:
        """Replace all stored tokens; see ``KVStrategy``."""
        self.reset()
        held = self.rows.restore(numbers)
        for name, values in rows.items():
            stack, number = self._places[name]
            stack.rows[number, : len(held)] = values[held]

    def write(self, name: str, values: Array) -> None:
        """Replace the stored rows of a variable, in the order of their tokens."""
        self.settle()
        stack, number = self._places[name]
        stack.rows[number, self.rows.order()] = values

    def update_kvcache_for(self, present: Sequence[Array], plan: RowCopy) -> None:
        """Schedule new rows to be appended before the next read; see ``KVStrategy``."""
        self.settle()
        self._pending = present, plan

    def prepare_past(self, rows: int) -> None:
        """Copy new rows, and zero forgotten rows among the first ones."""
        self.settle()
        forgotten = self.rows.forgotten(rows)
        if not len(forgotten):
            return
        first, last = int(forgotten[0]), int(forgotten[-1])
        solid = last - first + 1 == len(forgotten)
        for stack in self._stacks:
            stack.rows[:, slice(first, last + 1) if solid else forgotten] = 0
        self.rows.clean(forgotten)

    def truncate(self, tokens: int) -> None:
        """Keep only the first tokens; nothing moves."""
        self.rows.truncate(tokens)

    def reset(self, tokens: int = 1) -> None:
        """Forget all tokens; all memory stays."""
        del tokens
        self.rows.truncate(0)
        self._pending, self.copied_bytes = None, 0

    def settle(self) -> None:
        """Copy pending rows."""
        if self._pending is not None:
            present, plan = self._pending
            self.copied_bytes += copy_kvcache(present, [s.rows for s in self._stacks], plan)
            self._pending = None  # not before the copy: an interrupted copy is repeated


def _allocate(device: Device, names: Sequence[str], kind: RowLayout, rows: int) -> _Stack:
    memory = device.allocate(len(names) * kind.pitch(rows))
    return _Stack(tuple(names), memory, kind.view(memory.data, 0, len(names), rows))
