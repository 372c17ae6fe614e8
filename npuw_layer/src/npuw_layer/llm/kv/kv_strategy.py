"""Protocol of a KV cache, independent of its layout in memory.

``kv_cache`` stores each variable in one buffer, ``block_cache`` in blocks allocated on demand.

Source: NPUW separates its caches in the same way (docs/reference/npuw.md#kv-strategies).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from npuw_layer.backends.protocols import Array, Memory, Program, TensorInfo
from npuw_layer.llm.kv.copies import RowCopy
from npuw_layer.llm.kv.kv_rows import KVRows


class Attachment(Protocol):
    """Bindings of a program that reads its past from a cache, and may write new rows there."""

    def refresh(self) -> None:
        """Bind tensors that have moved since the last run; called before each run.

        Raises:
            DeviceError: device memory is exhausted.
        """
        ...


class KVStrategy(Protocol):
    """K and V of one conversation in device memory."""

    rows: KVRows
    """Rows in use, and their tokens."""
    copied_bytes: int
    """Bytes that the host has copied into the cache since the last reset."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the variables."""
        ...

    @property
    def stacks(self) -> Sequence[Sequence[str]]:
        """Groups of variables of equal layout by the programs' names, in buffer order."""
        ...

    @property
    def memories(self) -> Sequence[Memory]:
        """Device memory at present."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of device memory at present."""
        ...

    @property
    def most_bytes(self) -> int:
        """Bytes of device memory of a full cache."""
        ...

    def attach(
        self, program: Program, inputs: Sequence[TensorInfo], past: int, first_row: int | None
    ) -> Attachment:
        """Bind a program to the cache.

        Args:
            program: program whose other tensors are bound.
            inputs: all its inputs.
            past: rows that it reads.
            first_row: first row that the program writes itself. ``KVLayout.together`` must allow
                it, and no variable may be transposed. If None, the host copies new rows.
        """
        ...

    def make_room(self, count: int) -> None:
        """Provide memory for new tokens before they are computed.

        Raises:
            DeviceError: device memory is exhausted.
        """
        ...

    def prepare_past(self, rows: int) -> None:
        """Prepare the first rows to be read: copy new rows, and zero forgotten ones.

        No token attends to forgotten rows, but a NaN there would survive multiplication by 0.
        """
        ...

    def update_kvcache_for(self, present: Sequence[Array], plan: RowCopy) -> None:
        """Schedule new rows to be appended to all caches before the next read.

        So a prompt's first token does not wait for the copy; NPUW copies as late
        (docs/reference/npuw.md#kv-copies).

        Args:
            present: for each of ``stacks``, [variables, width, heads, channels]; must not change
                until ``prepare_past``.
            plan: rows and their target, which must exist.
        """
        ...

    def settle(self) -> None:
        """Copy pending rows."""
        ...

    def read(self, name: str) -> Array:
        """Return a variable's stored rows in the order of their tokens, [tokens, heads, width]."""
        ...

    def write(self, name: str, values: Array) -> None:
        """Replace the stored rows of a variable, in the order of their tokens."""
        ...

    def between(self, begin: int, end: int) -> list[Array]:
        """Return the rows of a range of tokens, [variables, tokens, heads, width] each.

        One array for each of ``stacks``; the cache has not slid.
        """
        ...

    def restore(self, rows: Sequence[Array], tokens: int) -> None:
        """Append rows that ``between`` returned."""
        ...

    def replace(self, numbers: Array, rows: Mapping[str, Array]) -> None:
        """Replace all stored tokens.

        Args:
            numbers: numbers of the tokens, ascending; the oldest are dropped if the window is
                exceeded.
            rows: for each variable, [tokens, heads, width].
        """
        ...

    def truncate(self, tokens: int) -> None:
        """Keep only the first tokens; nothing moves."""
        ...

    def reset(self, tokens: int = 1) -> None:
        """Forget all tokens, and keep memory for the given number of next tokens."""
        ...
