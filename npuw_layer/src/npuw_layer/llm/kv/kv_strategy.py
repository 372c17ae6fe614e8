"""What a conversation and its static models need of a cache, however its rows lie.

``kv_cache`` has each variable in one piece, ``block_cache`` in blocks that come as they are needed.

Source: the original tells its caches apart likewise (fact sheet npuw §h, good 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from npuw_layer.backends.protocols import Array, Program, TensorInfo
from npuw_layer.llm.kv.copies import RowCopy
from npuw_layer.llm.kv.kv_rows import KVRows


class Attachment(Protocol):
    """A program that finds its past in a cache, and perhaps puts its new rows there."""

    def refresh(self) -> None:
        """Bind what lies elsewhere than at the last run; before each run.

        Raises:
            DeviceError: there is no memory left.
        """
        ...


class KVStrategy(Protocol):
    """The K and V of one conversation, in device memory."""

    rows: KVRows
    """Which tokens it holds."""
    copied_bytes: int
    """What was copied into it by the host, since the last reset."""

    @property
    def names(self) -> Sequence[str]:
        """The variables."""
        ...

    @property
    def stacks(self) -> Sequence[Sequence[str]]:
        """The variables that are alike, as programs call them, in the order of their buffers."""
        ...

    @property
    def nbytes(self) -> int:
        """Device memory that it takes now."""
        ...

    @property
    def most_bytes(self) -> int:
        """Device memory that it takes when it is full."""
        ...

    def attach(
        self, program: Program, inputs: Sequence[TensorInfo], past: int, first_row: int | None
    ) -> Attachment:
        """Let a program read its past here.

        Args:
            program: bound to all else.
            inputs: its own, others among them.
            past: rows that it reads.
            first_row: from which on it puts its new rows right here, which ``together`` allows;
                none is transposed. None has them copied.
        """
        ...

    def together(self, first: int, count: int) -> bool:
        """Whether a program may write rows from one on itself: there is room, side by side."""
        ...

    def make_room(self, count: int) -> None:
        """See that there is memory for new tokens, before they are computed.

        Raises:
            DeviceError: there is none left.
        """
        ...

    def prepare_past(self, rows: int) -> None:
        """Get the first rows ready to be read: copy new ones, and zero those that are forgotten.

        Nobody attends to these; but what is no number would not vanish when it is multiplied by 0.
        """
        ...

    def update_kvcache_for(self, present: Sequence[Array], plan: RowCopy) -> None:
        """Append new rows to all caches, when somebody is about to read them.

        So a prompt's first token need not wait for its rows to be copied; NPUW copies them as
        late (fact sheet npuw §c.5).

        Args:
            present: for each of ``stacks``, [variables, width, heads, channels]; unchanged until
                ``prepare_past``.
            plan: which rows go where; there is room.
        """
        ...

    def settle(self) -> None:
        """Copy what is still to be copied."""
        ...

    def read(self, name: str) -> Array:
        """The stored rows of a variable in the order of their tokens, [tokens, heads, width]."""
        ...

    def write(self, name: str, values: Array) -> None:
        """Replace the stored rows of a variable, in the order of their tokens."""
        ...

    def between(self, begin: int, end: int) -> list[Array]:
        """The rows of tokens from one number to another, [variables, tokens, heads, width] each.

        One for each of ``stacks``; the cache has not slid.
        """
        ...

    def restore(self, rows: Sequence[Array], tokens: int) -> None:
        """Append rows that ``between`` gave before."""
        ...

    def replace(self, numbers: Array, rows: Mapping[str, Array]) -> None:
        """Hold other tokens than before.

        Args:
            numbers: of the tokens, ascending; the oldest give way if they are more than a window.
            rows: for each variable, [tokens, heads, width].
        """
        ...

    def truncate(self, tokens: int) -> None:
        """Keep only the first tokens; nothing moves."""
        ...

    def reset(self, tokens: int = 1) -> None:
        """Forget everything, and keep memory for so many tokens that come next."""
        ...
