"""Layouts of K and V variables, and their bytes; one call copies rows of equal layout."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npuw_layer.backends.arena import ELEMENT_TYPES, Arena, padded
from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, Array, TensorInfo
from npuw_layer.tensors.names import is_transposed
from npuw_layer.tensors.traits import traits


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Element type, row shape and layout of one or more variables."""

    element: str
    heads: int
    width: int
    transposed: bool

    @staticmethod
    def of(info: TensorInfo) -> RowLayout:
        """Return the layout of a static model's variable."""
        transposed = is_transposed(info.name)
        _, *dims = info.shape
        heads, width = dims[:2] if transposed else dims[1:]
        return RowLayout(info.element, heads, width, transposed)

    def pitch(self, rows: int) -> int:
        """Return the bytes from one variable with ``rows`` rows to the next."""
        return padded(rows * self.heads * self.width * ELEMENT_TYPES[self.element].itemsize)

    def empty(self) -> Array:
        """Return an empty array of rows, [0, heads, width]."""
        return np.empty((0, self.heads, self.width), ELEMENT_TYPES[self.element])

    def view(self, data: Array, offset: int, variables: int, rows: int) -> Array:
        """View bytes as rows [variables, rows, heads, width], for any layout.

        Args:
            data: bytes, u8.
            offset: offset of the first variable.
            variables: number of variables.
            rows: rows of each variable.
        """
        element = ELEMENT_TYPES[self.element]
        shape = (
            (self.heads, self.width, rows) if self.transposed else (rows, self.heads, self.width)
        )
        inner = [element.itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        strides = (self.pitch(rows), *inner)
        every: Array = np.ndarray((variables, *shape), element, data, offset, strides)
        return _by_token(every) if self.transposed else every


def by_layout(variables: Iterable[tuple[str, TensorInfo]]) -> dict[RowLayout, list[str]]:
    """Group variables by layout; names are those that programs use."""
    found: dict[RowLayout, list[str]] = {}
    for name, info in variables:
        found.setdefault(RowLayout.of(info), []).append(name)
    return found


def present_rows(arena: Arena, names: Sequence[str]) -> Array:
    """Return the new rows of variables of equal layout, [variables, tokens, heads, width]; a view.

    Args:
        arena: memory to which a static model writes the rows, side by side.
        names: the variables, by the model's names.
    """
    rows = arena.stack([ASSIGN_PREFIX + name for name in names])
    return _by_token(rows) if is_transposed(names[0]) else rows


def _by_token(rows: Array) -> Array:
    """View transposed rows [variables, heads, width, rows] as [variables, rows, heads, width]."""
    return rows.transpose(0, 3, 1, 2)


def is_cache(variable: str) -> bool:
    """Return whether a variable is K or V, i.e. no trait owns it."""
    return not any(trait.owns(variable) for trait in traits())


def is_cache_input(info: TensorInfo) -> bool:
    """Return whether an input of a static model reads K or V."""
    return info.name.startswith(READ_PREFIX) and is_cache(info.name.removeprefix(READ_PREFIX))


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Numbers of variables by the layout of their rows; a cache need not be allocated."""

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
