"""The K and V caches of one conversation, in device memory, and the copies into them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npuw_layer.llm.arena import ELEMENT_TYPES, Arena, padded
from npuw_layer.llm.copies import RowCopy, copy_kvcache
from npuw_layer.llm.kv_rows import KVRows
from npuw_layer.llm.names import is_transposed, plain_variable
from npuw_layer.lora.names import is_cache_input
from npuw_layer.ports import ASSIGN_PREFIX, READ_PREFIX, Array, Device, Memory, Program, TensorInfo


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


@dataclass(frozen=True, slots=True)
class _Kind:
    """What variables have in common that are alike."""

    element: str
    heads: int
    width: int
    transposed: bool

    @staticmethod
    def of(info: TensorInfo) -> _Kind:
        """That of a variable of a static model."""
        transposed = is_transposed(info.name)
        _, *dims = info.shape
        heads, width = dims[:2] if transposed else dims[1:]
        return _Kind(info.element, heads, width, transposed)


class KVCache:
    """One buffer for each variable, as long as the largest variant needs.

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
        alike: dict[_Kind, list[str]] = {}
        for info in states:
            alike.setdefault(_Kind.of(info), []).append(info.name.removeprefix(READ_PREFIX))
        self._stacks = [_allocate(device, names, kind, len(rows)) for kind, names in alike.items()]
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

    def bind(self, program: Program, inputs: Sequence[TensorInfo]) -> None:
        """Let a program read its past here."""
        for info in inputs:
            if is_cache_input(info):
                name = plain_variable(info.name.removeprefix(READ_PREFIX))
                stack, number = self._places[name]
                program.bind(info.name, stack.memory, number * stack.rows.strides[0])

    def bind_present(self, program: Program, row: int) -> None:
        """Let a program put its new rows where they belong, from a row on; none is transposed."""
        for name, (stack, number) in self._places.items():
            offset = number * stack.rows.strides[0] + row * stack.rows.strides[1]
            program.bind(ASSIGN_PREFIX + name, stack.memory, offset)

    def read(self, name: str) -> Array:
        """The stored rows of a variable in the order of their tokens, [tokens, heads, width].

        A view, unless the cache has slid.
        """
        self.settle()
        stack, number = self._places[name]
        rows = stack.rows[number]
        return rows[: self.rows.tokens] if self.rows.plain else rows[self.rows.order()]

    def blocks(self, begin: int, end: int) -> list[Array]:
        """The rows of tokens from one number to another, [variables, tokens, heads, width] each.

        Views, one for each of ``stacks``; the cache has not slid.
        """
        self.settle()
        return [stack.rows[:, begin:end] for stack in self._stacks]

    def restore(self, blocks: Sequence[Array], tokens: int) -> None:
        """Append rows that ``blocks`` gave before."""
        self.settle()
        self.rows.expect(tokens)
        plan = RowCopy(tokens, self.rows.tokens)
        copy_kvcache(blocks, [stack.rows for stack in self._stacks], plan)
        self.rows.append(tokens)

    def replace(self, numbers: Array, rows: Mapping[str, Array]) -> None:
        """Hold other tokens than before.

        Args:
            numbers: of the tokens, ascending; the oldest give way if they are more than a window.
            rows: for each variable, [tokens, heads, width].
        """
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
        """Append new rows to all caches, when somebody is about to read them.

        So a prompt's first token need not wait for its rows to be copied; NPUW copies them as
        late (fact sheet npuw §c.5).

        Args:
            present: for each of ``stacks``, [variables, width, heads, channels]; unchanged until
                ``prepare_past``.
            plan: which rows go where.
        """
        self.settle()
        self._pending = present, plan

    def prepare_past(self, rows: int) -> None:
        """Get the first rows ready to be read: copy new ones, and zero those that are forgotten.

        Nobody attends to these; but what is no number would not vanish when it is multiplied by 0.
        """
        self.settle()
        forgotten = self.rows.take_forgotten(rows)
        if not len(forgotten):
            return
        first, last = int(forgotten[0]), int(forgotten[-1])
        solid = last - first + 1 == len(forgotten)
        for stack in self._stacks:
            stack.rows[:, slice(first, last + 1) if solid else forgotten] = 0

    def truncate(self, tokens: int) -> None:
        """Keep only the first tokens; nothing moves."""
        self.rows.truncate(tokens)

    def reset(self) -> None:
        """Forget everything."""
        self.rows.truncate(0)
        self._pending, self.copied_bytes = None, 0

    def settle(self) -> None:
        """Copy what is still to be copied."""
        if self._pending is not None:
            present, plan = self._pending
            self._pending = None
            self.copied_bytes += copy_kvcache(present, [s.rows for s in self._stacks], plan)


def _allocate(device: Device, names: Sequence[str], kind: _Kind, rows: int) -> _Stack:
    element = ELEMENT_TYPES[kind.element]
    shape = (kind.heads, kind.width, rows) if kind.transposed else (rows, kind.heads, kind.width)
    pitch = padded(math.prod(shape) * element.itemsize)
    memory = device.allocate(len(names) * pitch)
    dense = np.ndarray(shape, element, memory.data)
    every: Array = np.ndarray(
        (len(names), *shape), element, memory.data, strides=(pitch, *dense.strides)
    )
    return _Stack(tuple(names), memory, _by_token(every) if kind.transposed else every)


def present_rows(arena: Arena, names: Sequence[str]) -> Array:
    """The new rows of variables that are alike, [variables, tokens, heads, width]; a view.

    Args:
        arena: where a static model puts them, side by side.
        names: the variables, as the model calls them.
    """
    rows = arena.stack([ASSIGN_PREFIX + name for name in names])
    return _by_token(rows) if is_transposed(names[0]) else rows


def _by_token(rows: Array) -> Array:
    """See transposed rows [variables, heads, width, rows] as [variables, rows, heads, width]."""
    return rows.transpose(0, 3, 1, 2)
