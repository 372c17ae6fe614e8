"""Domain of a kernel: a grid, and windows with the least number of dimensions.

Dimensions in which no window moves have length 1; neighbouring dimensions that are contiguous in
every window are merged. A window with one column, or with a repeated one, has ``col_stride`` 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from driver_layer.abi.dtypes import BY_CODE, FLOAT8, DType
from driver_layer.abi.shave import GRID_DIMS, KERNEL_ARGS, MAX_ELEMENTS, MAX_WINDOWS, WINDOW

_TYPES = frozenset(
    {
        DType.FP32,
        DType.FP16,
        DType.BFP16,
        *FLOAT8,
        DType.I64,
        DType.I32,
        DType.U8,
        DType.I8,
        DType.BIN,
    }
)

_OVERLAP_WORK = 20000
"""Limit of steps of the search for a common byte of two windows."""


@dataclass(frozen=True, slots=True)
class Window:
    """A memory operand; strides are 0 for dimensions that repeat or have one element."""

    kind: DType
    address: int
    cols: int
    col_stride: int
    strides: tuple[int, ...]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return BY_CODE[self.kind].storage.itemsize


@dataclass(frozen=True, slots=True)
class Domain:
    """A grid, outermost dimension first, and the windows over it."""

    grid: tuple[int, ...]
    windows: tuple[Window, ...]

    @property
    def widest(self) -> int:
        """Columns of the widest window."""
        return max((window.cols for window in self.windows), default=1)

    def extent(self, window: Window) -> int:
        """Return the bytes from a window's first byte to its last."""
        dims = zip((*self.grid, window.cols), (*window.strides, window.col_stride), strict=True)
        return sum((dim - 1) * stride for dim, stride in dims) + window.itemsize


def parse(args: bytes) -> Domain | None:
    """Read an argument block; None if SHAVE would reject it."""
    head = np.frombuffer(args, KERNEL_ARGS, 1)[0]
    count, grid = int(head["window_count"]), tuple(int(dim) for dim in head["grid"])
    if count > MAX_WINDOWS or KERNEL_ARGS.itemsize + count * WINDOW.itemsize > len(args):
        return None
    if not all(grid):
        return None
    windows: list[Window] = []
    for record in np.frombuffer(args, WINDOW, count, KERNEL_ARGS.itemsize).tolist():
        address, cols, col_stride, strides, code, _ = record
        if code not in BY_CODE or BY_CODE[code].code not in _TYPES:
            return None
        if not 0 < cols * prod(grid) <= MAX_ELEMENTS:
            return None
        if cols == 1 or col_stride == 0:
            cols, col_stride = 1, 0
        steps = tuple(int(s) if dim > 1 else 0 for dim, s in zip(grid, strides, strict=True))
        windows.append(Window(BY_CODE[code].code, address, cols, col_stride, steps))
    return Domain(grid, tuple(windows))


def joined(domain: Domain) -> Domain:
    """Drop dimensions in which no window moves, and merge neighbours; the last ones remain."""
    windows = domain.windows
    dims: list[tuple[int, list[int]]] = []
    for axis, count in enumerate(domain.grid):
        steps = [window.strides[axis] for window in windows]
        if count == 1 or not any(steps):
            continue
        if dims and dims[-1][1] == [count * step for step in steps]:
            dims[-1] = (dims[-1][0] * count, steps)
        else:
            dims.append((count, steps))
    dims = [(1, [0] * len(windows))] * (GRID_DIMS - len(dims)) + dims
    return Domain(
        tuple(count for count, _ in dims),
        tuple(
            replace(window, strides=tuple(steps[number] for _, steps in dims))
            for number, window in enumerate(windows)
        ),
    )


def lengthened(domain: Domain) -> Domain:
    """Merge the innermost dimension into the columns, if it is contiguous with them everywhere."""
    wide = [window for window in domain.windows if window.col_stride]
    if len({window.cols for window in wide}) > 1:
        return domain
    inner = [(w.strides[-1], w.cols * w.col_stride) for w in domain.windows]
    if any(stride != row for stride, row in inner):
        return domain
    return _moved(
        domain,
        [(w.cols * domain.grid[-1] if w.col_stride else 1, w.col_stride) for w in domain.windows],
    )


def laid_out_as_columns(domain: Domain) -> Domain:
    """Turn the innermost dimension into columns, where each window has only one."""
    count = domain.grid[-1]
    if count == 1:
        return _moved(domain, [(1, window.itemsize) for window in domain.windows])
    return _moved(
        domain,
        [(count if w.strides[-1] else 1, w.strides[-1]) for w in domain.windows],
    )


def _moved(domain: Domain, columns: Sequence[tuple[int, int]]) -> Domain:
    """Return the domain without its innermost dimension, and with the given columns."""
    return Domain(
        (1, *domain.grid[:-1]),
        tuple(
            replace(window, cols=cols, col_stride=stride, strides=(0, *window.strides[:-1]))
            for window, (cols, stride) in zip(domain.windows, columns, strict=True)
        ),
    )


def apart(domain: Domain, one: Window, other: Window) -> bool:
    """Return whether two windows provably have no common byte."""
    begin, end = min(one.address, other.address), 0
    for window in (one, other):
        end = max(end, window.address + domain.extent(window))
    if domain.extent(one) + domain.extent(other) <= end - begin:
        return True
    memory = np.empty(end - begin, np.uint8)
    arrays = [
        np.ndarray(
            [d if s else 1 for d, s in zip((*domain.grid, w.cols), steps, strict=True)],
            f"V{w.itemsize}",
            memory,
            w.address - begin,
            steps,
        )
        for w in (one, other)
        for steps in [(*w.strides, w.col_stride)]
    ]
    try:
        # numpy's type stubs lack some of the accepted numbers.
        common = np.shares_memory(*arrays, max_work=_OVERLAP_WORK)  # pyright: ignore[reportArgumentType]
        return not common
    except np.exceptions.TooHardError:
        return False


def overlaps_itself(domain: Domain, window: Window) -> bool:
    """Return whether two points of the domain may share memory, except by repetition."""
    dims = zip((*domain.grid, window.cols), (*window.strides, window.col_stride), strict=True)
    reach = window.itemsize
    for stride, count in sorted((stride, dim) for dim, stride in dims if stride and dim > 1):
        if stride < reach:
            return True
        reach += (count - 1) * stride
    return False
