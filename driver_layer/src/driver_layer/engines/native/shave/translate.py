"""Translation of a verified SHAVE program and its arguments to a kernel of the host."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from driver_layer.abi.shave import GRID_DIMS, Instruction
from driver_layer.engines.native.jit.kernels import KernelSpec
from driver_layer.engines.native.shave.kernel import write_kernel
from driver_layer.engines.native.shave.passes import plan_passes
from driver_layer.engines.native.shave.row_program import WINDOW_WORDS, RowProgram
from driver_layer.engines.native.shave.shapes import SINGLE, Shapes, shapes_of, widths_of
from driver_layer.engines.native.shave.values import Values, values_of
from driver_layer.engines.native.shave.windows import (
    Domain,
    apart,
    joined,
    laid_out_as_columns,
    lengthened,
    overlaps_itself,
    parse,
)

COLUMNS = GRID_DIMS
"""Number of the columns' dimension, after those of the grid."""

_LARGEST = 1500
"""Maximum instructions to compile, about a second's work; models need a tenth of it."""

Resolve = Callable[[int, int], int]
"""Returns the host address of a device address and a size; raises DeviceFault."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A window in the kernel's arguments."""

    word: int
    """Argument that holds the address; the strides follow, of the grid and of the columns."""
    cols: int
    itemsize: int
    loaded: bool
    stored: bool


@dataclass(frozen=True, slots=True)
class Translated:
    """A kernel and its arguments.

    The grid may differ from the program's: dimensions are merged where possible, and dimensions of
    an elementwise program may be columns.
    """

    spec: KernelSpec
    words: tuple[int, ...]
    """Arguments as described in ``kernel.py``; the first three are the grid."""
    scratch_bytes: int
    """Scratch memory that each thread needs."""
    divisible_dims: tuple[int, ...]
    """Dimensions of more than one point whose parts are independent: 0 to 2 for the grid, 3 for
    columns."""
    first_window: int
    """Index of the first window's words."""
    operands: tuple[Operand, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Points of each grid dimension, then the columns of the first width."""
        return self.words[: GRID_DIMS + 1]

    def part(self, dim: int, begin: int, end: int) -> Translated:
        """Return the kernel for the points ``begin`` to before ``end`` of a divisible dimension."""
        words = list(self.words)
        words[dim] = end - begin
        for window in range(self.first_window, len(words), WINDOW_WORDS):
            words[window] += begin * words[window + 1 + dim]
        return replace(self, words=tuple(words))


def translate(program: Sequence[Instruction], args: bytes, resolve: Resolve) -> Translated | None:
    """Translate a program with an argument block to a kernel.

    Args:
        program: verified instructions.
        args: argument block.
        resolve: called for each window.

    Returns:
        The kernel; None if the reference engine must run the program: invalid arguments,
        overlapping windows, a window that is read after it was written, or too long a program.

    Raises:
        DeviceFault: from ``resolve``.
    """
    laid_out = _laid_out(tuple(program), args)
    if laid_out is None:
        return None
    kernel, places = laid_out
    hosts = [resolve(*place) for place in places]
    words = list(kernel.words)
    for window in range(kernel.first_window, len(words), WINDOW_WORDS):
        words[window] = hosts[words[window]]
    return replace(kernel, words=tuple(words))


@functools.lru_cache(4096)
def _laid_out(
    program: tuple[Instruction, ...], args: bytes
) -> tuple[Translated, tuple[tuple[int, int], ...]] | None:
    """Return a kernel whose arguments hold windows' numbers in the block, not their addresses.

    The second result is the device addresses and sizes of all windows of the block.
    """
    block = parse(args)
    if block is None:
        return None
    same = tuple(block.windows.index(window) for window in block.windows)
    values = values_of(program, same)
    if values is None:
        return None
    used = joined(Domain(block.grid, tuple(block.windows[number] for number in values.windows)))
    if _conflicts(used, values):
        return None
    values, domain = _as_rows(values, used, block.widest)
    shapes, columns = shapes_of(domain, block.widest if values.counts else 1)
    compiled = _compiled(values, shapes)
    if compiled is None or not compiled[1].turns_within(columns):
        return None
    spec, row_program = compiled
    sizes, first = row_program.slot_bytes(columns), row_program.first_window
    words = [*domain.grid, *columns, *accumulate(sizes[:-1], initial=0)][:first]
    operands: list[Operand] = []
    for index, (window, number) in enumerate(zip(domain.windows, values.windows, strict=True)):
        loaded, stored = index in values.loaded, index in values.stored
        operands.append(Operand(len(words), window.cols, window.itemsize, loaded, stored))
        words += [number, *window.strides, window.col_stride]
    dims = tuple(_divisible(domain, values))
    places = tuple((window.address, block.extent(window)) for window in block.windows)
    return Translated(spec, tuple(words), sum(sizes), dims, first, tuple(operands)), places


def _conflicts(domain: Domain, values: Values) -> bool:
    """Return whether the result depends on the order in which rows are computed."""
    for number in values.stored:
        window = domain.windows[number]
        repeats = any(dim > 1 and not s for dim, s in zip(domain.grid, window.strides, strict=True))
        if number in values.loaded and repeats:
            return True
        if overlaps_itself(domain, window):
            return True
        for other, one in enumerate(domain.windows):
            if other != number and not apart(domain, window, one):
                return True
    return False


def _as_rows(values: Values, domain: Domain, widest: int) -> tuple[Values, Domain]:
    """Choose the longest possible rows."""
    single = all(not window.col_stride for window in domain.windows)
    if single and not (values.counts and widest > 1):
        flat = values.without_rows([True] * len(values.nodes))
        return flat, laid_out_as_columns(domain)
    if not values.needs_rows:
        return values, lengthened(domain)
    return values, domain


@functools.lru_cache(1024)
def _compiled(values: Values, shapes: Shapes) -> tuple[KernelSpec, RowProgram] | None:
    """Return the kernel for values over windows of given shapes; None if none can be compiled."""
    widths = widths_of(values, shapes)
    if widths is None:
        return None
    narrow = [
        widths[number] == SINGLE and all(widths[source] == SINGLE for source in node.sources)
        for number, node in enumerate(values.nodes)
    ]
    values = values.without_rows(narrow)
    plan = plan_passes(values, widths, tuple(window.width for window in shapes.windows))
    if plan.size > _LARGEST:
        return None
    program = RowProgram(values, widths, shapes, plan)
    return KernelSpec(program.key, functools.partial(write_kernel, program)), program


def _divisible(domain: Domain, values: Values) -> list[int]:
    stored = [domain.windows[number] for number in values.stored]
    dims = [
        dim
        for dim, count in enumerate(domain.grid)
        if count > 1 and all(window.strides[dim] for window in stored)
    ]
    wide = {window.cols for window in domain.windows if window.col_stride}
    if not values.needs_rows and len(wide) == 1 and all(window.col_stride for window in stored):
        dims += [COLUMNS] * (wide != {1})
    return dims
