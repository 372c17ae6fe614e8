"""From a verified SHAVE program and its arguments to a kernel of the host."""

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
"""The dimension behind those of the grid."""

_LARGEST = 1500
"""Instructions that are worth compiling, about a second's work: models have a tenth of that."""

Resolve = Callable[[int, int], int]
"""Gives the host's address of so many bytes at a device address; raises DeviceFault."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A window as the kernel knows it."""

    word: int
    """The argument that holds its address; its strides follow, of the grid and of the columns."""
    cols: int
    itemsize: int
    loaded: bool
    stored: bool


@dataclass(frozen=True, slots=True)
class Translated:
    """A kernel and its arguments.

    The grid is not the program's: dimensions that can be one are one, and what is the same to each
    element may be columns all along.
    """

    spec: KernelSpec
    words: tuple[int, ...]
    """``kernel.py`` says what they are; the first three are the grid."""
    scratch_bytes: int
    """Memory that each thread needs."""
    divisible_dims: tuple[int, ...]
    """Dimensions of more than one point whose parts have nothing to do with each other: 0 to 2 of
    the grid, 3 for columns."""
    first_window: int
    """Where the windows' words begin."""
    operands: tuple[Operand, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Points of each dimension of the grid, then the columns of the first width."""
        return self.words[: GRID_DIMS + 1]

    def part(self, dim: int, begin: int, end: int) -> Translated:
        """The points from ``begin`` to before ``end`` of one of the ``divisible_dims``."""
        words = list(self.words)
        words[dim] = end - begin
        for window in range(self.first_window, len(words), WINDOW_WORDS):
            words[window] += begin * words[window + 1 + dim]
        return replace(self, words=tuple(words))


def translate(program: Sequence[Instruction], args: bytes, resolve: Resolve) -> Translated | None:
    """Make a kernel of a program with an argument block.

    Args:
        program: verified instructions.
        args: the block.
        resolve: called for each window.

    Returns:
        None if the reference engine has to run it: arguments that are not verified, windows that
        overlap, a window that is read after it was written, a program too long to compile.

    Raises:
        DeviceFault: ``resolve`` did.
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
    """All but the host's addresses, where the windows' numbers in the block are.

    Also device addresses and sizes of all windows of the block.
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
    """Whether it matters that the rows are done one after the other."""
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
    """Choose what the rows are: as long as can be."""
    single = all(not window.col_stride for window in domain.windows)
    if single and not (values.counts and widest > 1):
        flat = values.without_rows([True] * len(values.nodes))
        return flat, laid_out_as_columns(domain)
    if not values.needs_rows:
        return values, lengthened(domain)
    return values, domain


@functools.lru_cache(1024)
def _compiled(values: Values, shapes: Shapes) -> tuple[KernelSpec, RowProgram] | None:
    """The kernel for values over windows of such shapes."""
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
