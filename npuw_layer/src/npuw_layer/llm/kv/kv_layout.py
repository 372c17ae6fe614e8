"""How static models find K and V: of which type, in which order, and in how many pieces."""

from __future__ import annotations

from dataclasses import dataclass

from npuw_layer.options.llm import KvElement
from npuw_layer.tensors.names import block_variable


@dataclass(frozen=True, slots=True)
class Piece:
    """Stored rows that lie together.

    Attributes:
        begin: the first one.
        rows: how many.
        suffix: what is appended to the name of a variable that holds them.
    """

    begin: int
    rows: int
    suffix: str = ""

    def of(self, variable: str) -> str:
        """What the part of a variable is called that holds these rows."""
        return variable + self.suffix


@dataclass(frozen=True, slots=True)
class KVLayout:
    """What the static models of an LLM have in common.

    Attributes:
        element: i8 keeps caches in 8 bits with a scale for each row of a head, in a variable of its
            own; other types keep them in such floats; empty leaves them as they are computed.
        room: rows of the buffers of V, if V is to lie channel by channel; None lets it lie token by
            token.
        block: rows of a block, if caches lie in blocks; None leaves them in one piece.
    """

    element: KvElement = ""
    room: int | None = None
    block: int | None = None

    def pieces(self, past: int) -> tuple[Piece, ...]:
        """In which pieces a model reads the first rows; the last one may be shorter."""
        if self.block is None or not past:
            return (Piece(0, past),)
        begins = range(0, past, self.block)
        return tuple(
            Piece(begin, min(self.block, past - begin), self._suffix(begin, past))
            for begin in begins
        )

    def _suffix(self, begin: int, past: int) -> str:
        assert self.block is not None  # only pieces have one
        whole = begin + self.block <= past
        return block_variable("", begin // self.block if whole else None)


PLAIN = KVLayout()
"""As rows are computed, token by token, in one piece."""
