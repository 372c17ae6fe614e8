"""The K and V caches of one conversation, in device memory, and the copies into them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npuw_layer.llm.arena import ELEMENT_TYPES, padded
from npuw_layer.llm.kv_plan import RowCopy
from npuw_layer.ports import READ_PREFIX, Array, Device, Memory, Program, TensorInfo


@dataclass(frozen=True, slots=True)
class _Stack:
    """The buffers of variables that are alike, side by side.

    Attributes:
        names: the variables.
        memory: what they lie in.
        rows: [variables, rows, heads, width]; a view.
    """

    names: tuple[str, ...]
    memory: Memory
    rows: Array


class KVCache:
    """One buffer for each variable, as long as the largest variant needs.

    Every static model reads its past at the beginning of these buffers: rows are token by token, so
    that a shorter past is a prefix of a longer one, whatever its capacity.

    Args:
        device: where they lie.
        states: the variables' inputs in the model with the longest past.
        rows: tokens to hold.
    """

    def __init__(self, device: Device, states: Sequence[TensorInfo], rows: int) -> None:
        self.stored = 0
        """Tokens in the cache."""
        self._written = 0
        """Rows that hold something, forgotten or not; zeros lie behind them."""
        self._pending: tuple[Sequence[Array], RowCopy] | None = None
        """New rows that nobody has had to read yet."""
        alike: dict[tuple[str, int, int], list[str]] = {}
        for info in states:
            _, _, heads, width = info.shape
            name = info.name.removeprefix(READ_PREFIX)
            alike.setdefault((info.element, heads, width), []).append(name)
        self._stacks = [
            _allocate(device, names, element, (rows, heads, width))
            for (element, heads, width), names in alike.items()
        ]
        self._places = {
            name: (stack, number)
            for stack in self._stacks
            for number, name in enumerate(stack.names)
        }

    @property
    def names(self) -> Sequence[str]:
        """The variables."""
        return list(self._places)

    @property
    def stacks(self) -> Sequence[Sequence[str]]:
        """The variables that are alike, in the order of their buffers."""
        return [stack.names for stack in self._stacks]

    def bind(self, program: Program, inputs: Sequence[TensorInfo]) -> None:
        """Let a program read its past here."""
        for info in inputs:
            if info.name.startswith(READ_PREFIX):
                stack, number = self._places[info.name.removeprefix(READ_PREFIX)]
                program.bind(info.name, stack.memory, number * stack.rows.strides[0])

    def rows(self, name: str) -> Array:
        """The stored rows of a variable, [tokens, heads, width]; a view."""
        self._copy_pending()
        stack, number = self._places[name]
        return stack.rows[number, : self.stored]

    def update_kvcache_for(self, present: Sequence[Array], plan: RowCopy) -> None:
        """Append new rows to all caches, when somebody is about to read them.

        So a prompt's first token need not wait for its rows to be copied; NPUW copies them as
        late (fact sheet npuw §c.5).

        Args:
            present: for each of ``stacks``, [variables, width, heads, channels]; unchanged until
                ``prepare_past``.
            plan: which rows go where.
        """
        self._copy_pending()
        self._pending = present, plan
        self.stored = plan.target + plan.rows

    def prepare_past(self, rows: int) -> None:
        """Get the first rows ready to be read: copy new ones, and zero those that are forgotten.

        Nobody attends to these; but what is no number would not vanish when it is multiplied by 0.
        """
        self._copy_pending()
        if self._written <= self.stored or rows <= self.stored:
            return
        for stack in self._stacks:
            stack.rows[:, self.stored : min(rows, self._written)] = 0
        if rows >= self._written:
            self._written = self.stored

    def truncate(self, tokens: int) -> None:
        """Keep only the first tokens; nothing moves."""
        self.stored = min(self.stored, tokens)

    def reset(self) -> None:
        """Forget everything."""
        self.stored, self._pending = 0, None

    def _copy_pending(self) -> None:
        if self._pending is not None:
            present, plan = self._pending
            copy_kvcache(present, [stack.rows for stack in self._stacks], plan)
            self._written = max(self._written, plan.target + plan.rows)
            self._pending = None

    def free(self) -> None:
        """Give the memory back."""
        for stack in self._stacks:
            stack.memory.free()


def _allocate(
    device: Device, names: Sequence[str], element: str, shape: tuple[int, int, int]
) -> _Stack:
    kind = ELEMENT_TYPES[element]
    pitch = padded(math.prod(shape) * kind.itemsize)
    memory = device.allocate(len(names) * pitch)
    _, heads, width = shape
    token = heads * width * kind.itemsize
    rows: Array = np.ndarray(
        (len(names), *shape),
        kind,
        memory.data,
        strides=(pitch, token, width * kind.itemsize, kind.itemsize),
    )
    return _Stack(tuple(names), memory, rows)


def copy_kvcache(present: Sequence[Array], past: Sequence[Array], plan: RowCopy) -> None:
    """Move the rows that an inference produced to where the next ones read them.

    Args:
        present: for variables that are alike [variables, width, heads, channels], valid rows to the
            right.
        past: for the same ones [variables, capacity, heads, channels], filled from row 0.
        plan: which rows go where; one row after a generated token, a prompt's
            after prefill.

    Source: NPUW's llm_infer_request (fact sheet npuw §c.5).
    """
    for new, old in zip(present, past, strict=True):
        source = new[:, plan.source : plan.source + plan.rows]
        np.copyto(old[:, plan.target : plan.target + plan.rows], source)
