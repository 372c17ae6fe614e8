"""Division of dimensions into blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from compiler_layer.dialects.ov.types import Shape


def ranges(length: int, size: int) -> list[tuple[int, int]]:
    """Divide a length into blocks; the last may be shorter."""
    return [(begin, min(begin + size, length)) for begin in range(0, length, size)]


def blocks(shape: Shape, block: Sequence[int]) -> Iterator[tuple[Shape, Shape]]:
    """Yield the begin and the shape of each block of a shape, row-major."""
    cuts = [ranges(d, size) for d, size in zip(shape, block, strict=True)]
    for corner in itertools.product(*cuts):
        yield tuple(b for b, _ in corner), tuple(e - b for b, e in corner)
