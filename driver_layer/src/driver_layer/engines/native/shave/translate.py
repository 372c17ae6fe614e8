"""Translation of a verified SHAVE program and its arguments to a kernel of the host."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import accumulate

from driver_layer.abi.shave import Instruction
from driver_layer.engines.native.jit.kernels import KernelSpec
from driver_layer.engines.native.shave.kernel import write_kernel
from driver_layer.engines.native.shave.passes import Planner
from driver_layer.engines.native.shave.row_program import RowProgram
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

_LARGEST = 1500
"""Maximum instructions to compile, about a second's work; models need a tenth of it."""


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
    """Arguments as described in ``kernel.py``; the first three are the grid. Windows have their
    device addresses, to be replaced by the host's."""
    scratch_bytes: int
    """Scratch memory that each thread needs."""
    operands: tuple[Operand, ...]


def translate(program: tuple[Instruction, ...], args: bytes) -> Translated | None:
    """Translate a program with an argument block to a kernel.

    Args:
        program: verified instructions.
        args: argument block.

    Returns:
        The kernel; None if the reference engine must run the program: invalid arguments,
        overlapping windows, a window that is read after it was written, or too long a program.
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
    sizes = row_program.slot_bytes(columns)
    words = [*domain.grid, *columns, *accumulate(sizes[:-1], initial=0)][: row_program.first_window]
    operands: list[Operand] = []
    for index, window in enumerate(domain.windows):
        loaded, stored = index in values.loaded, index in values.stored
        operands.append(Operand(len(words), window.cols, window.itemsize, loaded, stored))
        words += [window.address, *window.strides, window.col_stride]
    return Translated(spec, tuple(words), sum(sizes), tuple(operands))


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
    plan = Planner(values, widths, tuple(window.width for window in shapes.windows)).plan()
    if plan.size > _LARGEST:
        return None
    program = RowProgram(values, widths, shapes, plan)
    return KernelSpec(program.key, functools.partial(write_kernel, program)), program
