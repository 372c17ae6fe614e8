"""Shapes of windows, which a kernel's code depends on, and the widths of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from driver_layer.abi.dtypes import BY_CODE, DType
from driver_layer.abi.shave import REDUCTIONS, Op
from driver_layer.engines.native.shave.values import Node, Values
from driver_layer.engines.native.shave.windows import Domain

SINGLE = -1
"""Width of a value of which a row has only one. Other widths are numbers; values with equal
numbers have equally many columns."""


class Columns(Enum):
    """Layout of a window's columns."""

    SINGLE = "single"
    SIDE_BY_SIDE = "dense"
    STRIDED = "strided"


@dataclass(frozen=True, slots=True)
class WindowShape:
    """A window without its address and sizes."""

    kind: DType
    columns: Columns
    width: int
    varies: tuple[bool, ...]
    """True for each grid dimension in which the window moves."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return BY_CODE[self.kind].storage.itemsize


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes of the windows, and the width of IOTA."""

    windows: tuple[WindowShape, ...]
    iota: int


def shapes_of(domain: Domain, widest: int) -> tuple[Shapes, tuple[int, ...]]:
    """Return the shapes, and the number of columns of each width.

    Args:
        domain: the windows.
        widest: number of columns that IOTA counts.
    """
    widths: dict[int, int] = {}
    windows: list[WindowShape] = []
    for window in domain.windows:
        width, columns = SINGLE, Columns.SINGLE
        if window.col_stride:
            width = widths.setdefault(window.cols, len(widths))
            dense = window.col_stride == window.itemsize
            columns = Columns.SIDE_BY_SIDE if dense else Columns.STRIDED
        varies = tuple(bool(stride) for stride in window.strides)
        windows.append(WindowShape(window.kind, columns, width, varies))
    iota = widths.setdefault(widest, len(widths)) if widest > 1 else SINGLE
    return Shapes(tuple(windows), iota), tuple(widths)


def widths_of(values: Values, shapes: Shapes) -> tuple[int, ...] | None:
    """Return the width of each value; None if widths of operands differ, or do not fit a window."""
    widths: list[int] = []
    moves: list[tuple[bool, ...]] = []
    for node in values.nodes:
        sources = {widths[source] for source in node.sources} - {SINGLE}
        if len(sources) > 1:
            return None
        widths.append(_width(node, sources, shapes))
        own = shapes.windows[node.window].varies if node.op is Op.LD else ()
        moves.append(_any([own, *(moves[source] for source in node.sources)]))
    for window, value in values.stores:
        shape = shapes.windows[window]
        if widths[value] not in (SINGLE, shape.width):
            return None
        if any(m and not v for m, v in zip(moves[value], shape.varies, strict=False)):
            return None
    return tuple(widths)


def _width(node: Node, sources: set[int], shapes: Shapes) -> int:
    if node.op is Op.LD:
        return shapes.windows[node.window].width
    if node.op is Op.IOTA:
        return shapes.iota
    if node.op in REDUCTIONS or not sources:
        return SINGLE
    return next(iter(sources))


def _any(parts: Sequence[tuple[bool, ...]]) -> tuple[bool, ...]:
    length = max(map(len, parts))
    return tuple(any(part[dim] for part in parts if part) for dim in range(length))
