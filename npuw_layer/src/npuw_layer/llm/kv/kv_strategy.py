"""Base of KV caches, independent of their layout in memory.

``kv_cache`` stores each variable in one buffer, ``block_cache`` in blocks allocated on demand.

Source: NPUW separates its caches in the same way (docs/reference/npuw.md#kv-strategies).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from npuw_layer.backends.protocols import Array, Memory, Program, TensorInfo
from npuw_layer.llm.kv.copies import RowCopy
from npuw_layer.llm.kv.kv_rows import KVRows

Refresh = Callable[[], None]
"""Binds tensors of a program that have moved since its last run; called before each run.

It raises a DeviceError if device memory is exhausted.
"""


class KVStrategy(ABC):
    """K and V of one conversation in device memory.

    Args:
        rows: number of rows, and the token of each.
    """

    def __init__(self, rows: KVRows) -> None:
        self.rows = rows
        """Rows in use, and their tokens."""
        self.copied_bytes = 0
        """Bytes that the host has copied into the cache since the last reset."""
        self._pending: tuple[Sequence[Array], RowCopy] | None = None
        """New rows, to be copied before they are read."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of the variables."""

    @property
    @abstractmethod
    def stacks(self) -> Sequence[Sequence[str]]:
        """Groups of variables of equal layout by the programs' names, in buffer order."""

    @property
    @abstractmethod
    def memories(self) -> Sequence[Memory]:
        """Device memory at present."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of device memory at present."""

    @property
    def most_bytes(self) -> int:
        """Bytes of device memory of a full cache."""
        return self.nbytes

    @abstractmethod
    def attach(
        self, program: Program, inputs: Sequence[TensorInfo], past: int, first_row: int | None
    ) -> Refresh:
        """Bind a program that reads its past from the cache, and may write new rows there.

        Args:
            program: program whose other tensors are bound.
            inputs: all its inputs.
            past: rows that it reads.
            first_row: first row that the program writes itself. ``KVLayout.together`` must allow
                it, and no variable may be transposed. If None, the host copies new rows.
        """

    def make_room(self, count: int) -> None:
        """Provide memory for new tokens before they are computed.

        Raises:
            DeviceError: device memory is exhausted.
        """
        del count  # by default all memory is allocated from the start

    def prepare_past(self, rows: int) -> None:
        """Copy new rows to their place, and zero forgotten ones, before the first rows are read.

        No token attends to forgotten rows, but a NaN there would survive multiplication by 0.
        """
        self.settle()
        forgotten = self.rows.forgotten(rows)
        if len(forgotten):
            self._zero(forgotten)
            self.rows.clean(forgotten)

    def update_kvcache_for(self, present: Sequence[Array], plan: RowCopy) -> None:
        """Schedule new rows to be appended to all caches before the next read.

        So a prompt's first token does not wait for the copy; NPUW copies as late
        (docs/reference/npuw.md#kv-copies).

        Args:
            present: for each of ``stacks``, [variables, width, heads, channels]; must not change
                until ``prepare_past``.
            plan: rows and their target, which must exist.
        """
        self.settle()
        self._pending = present, plan

    def settle(self) -> None:
        """Copy pending rows."""
        if self._pending is not None:
            present, plan = self._pending
            self.copied_bytes += self._copy(present, plan)
            self._pending = None  # not before the copy: an interrupted copy is repeated

    @abstractmethod
    def read(self, name: str) -> Array:
        """Return a variable's stored rows in the order of their tokens, [tokens, heads, width]."""

    @abstractmethod
    def write(self, name: str, values: Array) -> None:
        """Replace the stored rows of a variable, in the order of their tokens."""

    @abstractmethod
    def between(self, begin: int, end: int) -> list[Array]:
        """Return the rows of a range of tokens, [variables, tokens, heads, width] each.

        One array for each of ``stacks``; the cache has not slid.
        """

    def restore(self, rows: Sequence[Array], tokens: int) -> None:
        """Append rows that ``between`` returned."""
        self.settle()
        self.make_room(tokens)
        self.rows.expect(tokens)
        self._copy(rows, RowCopy(tokens, self.rows.tokens))
        self.rows.append(tokens)

    def replace(self, numbers: Array, rows: Mapping[str, Array]) -> None:
        """Replace all stored tokens.

        Args:
            numbers: numbers of the tokens, ascending; the oldest are dropped if the window is
                exceeded.
            rows: for each variable, [tokens, heads, width].
        """
        self.reset(min(len(numbers), self.rows.window))
        held = self.rows.restore(numbers)
        for name, values in rows.items():
            self.write(name, values[held])

    def copy_from(self, other: KVStrategy) -> None:
        """Replace all stored tokens by those of another cache with the same layout."""
        tokens = other.rows.tokens
        if tokens and other.rows.plain:
            self.reset(tokens)
            self.restore(other.between(0, tokens), tokens)
        else:
            self.replace(other.rows.numbers(), {name: other.read(name) for name in other.names})

    def truncate(self, tokens: int) -> None:
        """Keep only the first tokens; nothing moves."""
        self.rows.truncate(tokens)

    def reset(self, tokens: int = 1) -> None:
        """Forget all tokens, and keep memory for the given number of next tokens."""
        del tokens
        self.rows.truncate(0)
        self._pending, self.copied_bytes = None, 0

    @abstractmethod
    def _copy(self, present: Sequence[Array], plan: RowCopy) -> int:
        """Copy rows to their place; return the number of bytes."""

    @abstractmethod
    def _zero(self, rows: Array) -> None:
        """Zero rows of all variables, given in ascending order."""
