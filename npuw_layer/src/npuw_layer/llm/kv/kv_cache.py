"""The K and V caches of one conversation, in device memory, and the copies into them."""

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
from npuw_layer.llm.kv.kv_kinds import Kind, alike, is_cache_input
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.llm.kv.kv_strategy import Attachment
from npuw_layer.tensors.names import plain_variable


@dataclass(frozen=True, slots=True)
class _Stack:
    """The buffers of variables that are alike, side by side.

    Attributes:
        names: the variables, as programs call them.
        memory: what they lie in.
        rows: [variables, rows, heads, width]; a view, however they lie.
    """

    names: tuple[str, ...]
    memory: Memory
    rows: Array


class _Bound:
    """What is bound to buffers that never move; satisfies ``kv_strategy.Attachment``."""

    def refresh(self) -> None:
        """Nothing lies elsewhere."""


class KVCache:
    """One buffer for each variable, as long as the largest variant; a ``KVStrategy``.

    Every static model reads its past at the beginning of these buffers: rows are token by token, so
    that a shorter past is a prefix of a longer one, whatever its capacity. Transposed ones lie [1,
    heads, width, rows], and static models read the beginning of each channel.

    Args:
        device: where they lie.
        states: the variables' inputs in the model with the longest past.
        rows: how many it has, and which tokens they hold.
    """

    def __init__(self, device: Device, states: Sequence[TensorInfo], rows: KVRows) -> None:
        self.rows = rows
        """Which tokens it holds."""
        self.copied_bytes = 0
        """What was copied into it by the host, since the last reset."""
        self._pending: tuple[Sequence[Array], RowCopy] | None = None
        """New rows that nobody has had to read yet."""
        kinds = alike((info.name.removeprefix(READ_PREFIX), info) for info in states)
        self._stacks = [_allocate(device, names, kind, len(rows)) for kind, names in kinds.items()]
        self._places = {
            plain_variable(name): (stack, number)
            for stack in self._stacks
            for number, name in enumerate(stack.names)
        }

    @property
    def names(self) -> Sequence[str]:
        """The variables."""
        return list(self._places)

    @property
    def stacks(self) -> Sequence[Sequence[str]]:
        """The variables that are alike, as programs call them, in the order of their buffers."""
        return [stack.names for stack in self._stacks]

    @property
    def nbytes(self) -> int:
        """Device memory that it takes."""
        return sum(stack.memory.data.size for stack in self._stacks)

    @property
    def most_bytes(self) -> int:
        """The same: it is as long from the beginning."""
        return self.nbytes

    def attach(
        self, program: Program, inputs: Sequence[TensorInfo], past: int, first_row: int | None
    ) -> Attachment:
        """Let a program read its past here; see ``KVStrategy``."""
        del past  # as many rows as its inputs have
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

    def together(self, first: int, count: int) -> bool:
        """Whether there is room for rows from one on."""
        return first + count <= len(self.rows)

    def make_room(self, count: int) -> None:
        """There is memory for all tokens that there may be."""

    def read(self, name: str) -> Array:
        """The stored rows of a variable in the order of their tokens, [tokens, heads, width].

        A view, unless the cache has slid.
        """
        self.settle()
        stack, number = self._places[name]
        rows = stack.rows[number]
        return rows[: self.rows.tokens] if self.rows.plain else rows[self.rows.order()]

    def between(self, begin: int, end: int) -> list[Array]:
        """The rows of tokens from one number to another, [variables, tokens, heads, width] each.

        Views, one for each of ``stacks``; the cache has not slid.
        """
        self.settle()
        return [stack.rows[:, begin:end] for stack in self._stacks]

    def restore(self, rows: Sequence[Array], tokens: int) -> None:
        """Append rows that ``between`` gave before."""
        self.settle()
        self.rows.expect(tokens)
        plan = RowCopy(tokens, self.rows.tokens)
        copy_kvcache(rows, [stack.rows for stack in self._stacks], plan)
        self.rows.append(tokens)

    def replace(self, numbers: Array, rows: Mapping[str, Array]) -> None:
        """Hold other tokens than before; see ``KVStrategy``."""
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
        """Append new rows when somebody is about to read them; see ``KVStrategy``."""
        self.settle()
        self._pending = present, plan

    def prepare_past(self, rows: int) -> None:
        """Copy new rows, and zero those among the first that are forgotten."""
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
        """Forget everything; there is memory for whatever comes next."""
        del tokens
        self.rows.truncate(0)
        self._pending, self.copied_bytes = None, 0

    def settle(self) -> None:
        """Copy what is still to be copied."""
        if self._pending is not None:
            present, plan = self._pending
            self.copied_bytes += copy_kvcache(present, [s.rows for s in self._stacks], plan)
            self._pending = None  # not before: what was interrupted is copied again


def _allocate(device: Device, names: Sequence[str], kind: Kind, rows: int) -> _Stack:
    memory = device.allocate(len(names) * kind.pitch(rows))
    return _Stack(tuple(names), memory, kind.view(memory.data, 0, len(names), rows))
