"""The K and V caches of one conversation, in device memory, and the copies into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npuw_layer.llm.arena import ELEMENT_TYPES, DeviceTensor
from npuw_layer.llm.kv_plan import RowCopy
from npuw_layer.ports import ASSIGN_PREFIX, READ_PREFIX, Array, Device, Memory, Program, TensorInfo


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
        self._memories: dict[str, Memory] = {}
        self._rows: dict[str, Array] = {}
        for info in states:
            _, _, heads, width = info.shape
            kind = ELEMENT_TYPES[info.element]
            memory = device.allocate(rows * heads * width * kind.itemsize)
            name = info.name.removeprefix(READ_PREFIX)
            self._memories[name] = memory
            self._rows[name] = memory.data.view(kind).reshape(rows, heads, width)

    @property
    def names(self) -> Sequence[str]:
        """The variables."""
        return list(self._rows)

    def bind(self, program: Program, inputs: Sequence[TensorInfo]) -> None:
        """Let a program read its past here."""
        for info in inputs:
            if info.name.startswith(READ_PREFIX):
                memory = self._memories[info.name.removeprefix(READ_PREFIX)]
                program.bind(info.name, memory, 0)

    def rows(self, name: str) -> Array:
        """The stored rows of a variable, [tokens, heads, width]; a view."""
        return self._rows[name][: self.stored]

    def update_kvcache_for(self, present: Mapping[str, DeviceTensor], plan: RowCopy) -> int:
        """Append new rows to all caches; give the bytes moved."""
        moved = copy_kvcache(
            {
                name: tensor.data[0]
                for name, tensor in present.items()
                if name.startswith(ASSIGN_PREFIX)
            },
            {ASSIGN_PREFIX + name: rows for name, rows in self._rows.items()},
            plan,
        )
        self.stored = plan.target + plan.rows
        return moved

    def truncate(self, tokens: int) -> None:
        """Keep only the first tokens; nothing moves."""
        self.stored = min(self.stored, tokens)

    def reset(self) -> None:
        """Forget everything, and zero the memory."""
        self.stored = 0
        for rows in self._rows.values():
            rows[...] = 0

    def free(self) -> None:
        """Give the memory back."""
        for memory in self._memories.values():
            memory.free()


def copy_kvcache(present: Mapping[str, Array], past: Mapping[str, Array], plan: RowCopy) -> int:
    """Move the rows that an inference produced to where the next ones read them.

    Args:
        present: for each variable [width, heads, channels], valid rows to the right.
        past: for each variable [capacity, heads, channels], filled from row 0.
        plan: which rows go where; one row after a generated token, a prompt's
            after prefill.

    Returns:
        The bytes moved.
    Source: NPUW's llm_infer_request (fact sheet npuw §c.5).
    """
    moved = 0
    for name, rows in present.items():
        source = rows[plan.source : plan.source + plan.rows]
        np.copyto(past[name][plan.target : plan.target + plan.rows], source)
        moved += source.nbytes
    return moved
