"""Addresses in CMX, and the buffers that are live at a moment."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compiler_layer.schedule.tasks import CmxBuffer

ALIGNMENT = 64
"""Alignment of CMX buffers."""


class Cmx:
    """The live buffers of CMX, and their addresses."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes
        self._live: dict[CmxBuffer, None] = {}

    def place(self, buffers: Sequence[CmxBuffer], passing: Collection[CmxBuffer]) -> bool:
        """Place all buffers or none; ``passing`` buffers are placed at the upper end."""
        for number, buffer in enumerate(buffers):
            buffer.offset = self._first_fit(buffer, buffer in passing)
            if buffer.offset is None:
                self.withdraw(buffers[:number])
                return False
            self._live[buffer] = None
        return True

    def pin(self, buffers: Sequence[CmxBuffer], offsets: Sequence[int | None]) -> None:
        """Place buffers at given addresses, which are free."""
        for buffer, offset in zip(buffers, offsets, strict=True):
            buffer.offset = offset
            self._live[buffer] = None

    def withdraw(self, buffers: Sequence[CmxBuffer]) -> None:
        """Undo the placement of buffers that were not used yet."""
        self.release(buffers)
        for buffer in buffers:
            buffer.offset = None

    def release(self, buffers: Sequence[CmxBuffer]) -> None:
        """Free buffers that are no longer needed."""
        for buffer in buffers:
            del self._live[buffer]

    def keep(self, buffers: Sequence[CmxBuffer]) -> None:
        """Undo a release."""
        self._live.update(dict.fromkeys(buffers))

    def _first_fit(self, buffer: CmxBuffer, at_upper_end: bool) -> int | None:
        tiles = set(buffer.tiles)
        taken = sorted(_extent(other) for other in self._live if not tiles.isdisjoint(other.tiles))
        return (self._from_above if at_upper_end else self._from_below)(taken, buffer.nbytes)

    def _from_below(self, taken: Sequence[tuple[int, int]], nbytes: int) -> int | None:
        offset = 0
        for begin, end in taken:
            if offset + nbytes <= begin:
                break
            offset = max(offset, -(-end // ALIGNMENT) * ALIGNMENT)
        return offset if offset + nbytes <= self._nbytes else None

    def _from_above(self, taken: Sequence[tuple[int, int]], nbytes: int) -> int | None:
        offset = (self._nbytes - nbytes) // ALIGNMENT * ALIGNMENT
        for begin, end in sorted(taken, key=lambda extent: extent[1], reverse=True):
            if end <= offset:
                break
            offset = min(offset, (begin - nbytes) // ALIGNMENT * ALIGNMENT)
        return offset if offset >= 0 else None


def _extent(buffer: CmxBuffer) -> tuple[int, int]:
    assert buffer.offset is not None  # only placed buffers are live
    return buffer.offset, buffer.offset + buffer.nbytes
