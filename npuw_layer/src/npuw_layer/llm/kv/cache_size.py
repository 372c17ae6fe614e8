"""Bytes of K and V of one conversation, computed without allocating a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.llm.kv.row_layouts import RowLayout, by_layout


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Numbers of variables by the layout of their rows."""

    variables: Mapping[RowLayout, int]

    @staticmethod
    def of(states: Sequence[TensorInfo]) -> CacheSize:
        """Return the size of caches with one input for each variable."""
        kinds = by_layout((info.name, info) for info in states)
        return CacheSize({kind: len(names) for kind, names in kinds.items()})

    @property
    def count(self) -> int:
        """Number of variables."""
        return sum(self.variables.values())

    @property
    def values(self) -> int:
        """Values of one token in all variables."""
        return sum(number * kind.heads * kind.width for kind, number in self.variables.items())

    @property
    def row_bytes(self) -> int:
        """Bytes of one token in all variables."""
        return sum(
            number * kind.heads * kind.width * ELEMENT_TYPES[kind.element].itemsize
            for kind, number in self.variables.items()
        )

    def nbytes(self, rows: int, block: int | None) -> int:
        """Return the bytes of a full cache.

        Args:
            rows: rows of the cache.
            block: rows of a block; None for one buffer. Blocks have a dummy beside them.
        """
        if block is None:
            return self._nbytes(rows)
        dummy = max(kind.pitch(block) for kind in self.variables)
        return -(-rows // block) * self._nbytes(block) + dummy

    def _nbytes(self, rows: int) -> int:
        return sum(number * kind.pitch(rows) for kind, number in self.variables.items())
