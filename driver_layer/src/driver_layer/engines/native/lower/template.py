"""Templates: kernels with arguments shared by all tasks that differ only in addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import NamedTuple

from driver_layer.engines.native.jit.kernels import KernelSpec
from driver_layer.engines.native.lower.arrays import Ints


class Access(IntFlag):
    """Access of a task to an operand."""

    READ = 1
    WRITE = 2


class Dim(NamedTuple):
    """A dimension of an operand."""

    length: int
    stride: int
    """Stride in bytes."""
    word: int
    """Kernel argument that holds the stride; NO_WORD if the stride is fixed."""


NO_WORD = -1


class Region(NamedTuple):
    """Bytes that an operand covers, from its address on: rows of ``width`` bytes, ``pitch`` apart.

    The region of an operand with more dimensions includes the gaps of the inner ones.
    """

    rows: int
    pitch: int
    width: int

    @property
    def extent(self) -> int:
        """Bytes from the first byte to the last, inclusive."""
        return (self.rows - 1) * self.pitch + self.width


@dataclass(frozen=True, slots=True)
class Slot:
    """An operand of a kernel.

    Attributes:
        word: kernel argument that holds the address; NO_WORD if the operand is fixed.
        access: read, written, or both.
        dims: dimensions with more than one element and a nonzero stride.
        element: contiguous bytes of an element.
        region: bytes that the operand covers.
        dense: True if the operand accesses every byte that it covers.
        offset: bytes from the address in the task to the first element.
    """

    word: int
    access: Access
    dims: tuple[Dim, ...]
    element: int
    region: Region
    dense: bool
    offset: int = 0


class ParallelDim(NamedTuple):
    """A parallel dimension of a kernel; a call may cover more or less of it than a task."""

    size: int
    """Argument that holds the trip count."""
    pointers: tuple[tuple[int, int], ...]
    """Pairs of arguments: an address, and its stride along the dimension."""


class Stream(NamedTuple):
    """Arguments of an operand that a kernel reads once, from the first byte to the last."""

    address: int
    length: int
    stride: int
    """Argument with the bytes of one step of ``length``."""


class Axis(NamedTuple):
    """Position of a split dimension in an operand."""

    slot: int
    """Index of the operand."""
    dim: int
    """Index of the dimension in the operand."""
    step: int
    """Elements of the split dimension in one step along ``dim``."""


@dataclass(frozen=True, slots=True)
class SplitDim:
    """A dimension along which operands may be split into parts.

    Attributes:
        size: argument that holds the size of a part.
        axes: operands that have the dimension.
        alignment: parts begin at multiples of it.
        pointers: further pairs of arguments: an address, and its stride along the dimension.
        count: argument that holds the number of parts of a call, whose words are consecutive;
            NO_WORD if each part needs a call.
    """

    size: int
    axes: tuple[Axis, ...]
    alignment: int
    pointers: tuple[tuple[int, int], ...]
    count: int


@dataclass(frozen=True, slots=True)
class Split:
    """The split of a template into parts.

    Attributes:
        whole: number of the template that was split.
        dim: dimension along which it was split.
        bounds: begins of the parts, and the total size.
        origins: for each slot, the containing slot of the unsplit template, and the byte offset.
    """

    whole: int
    dim: SplitDim
    bounds: tuple[int, ...]
    origins: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Reduction:
    """Reduction dimension; an accumulating call may continue the sums of another.

    Attributes:
        family: equal for kernels that differ only in whether they accumulate.
        accumulates: True if this kernel accumulates.
        max_size: largest size whose sums fit into their type; None if unlimited.
        accumulator: number of the slot of sums.
        sizes: arguments that hold the reduction size.
        group: argument that holds the quantization group size; NO_WORD if there is one group.
        pointers: arguments with addresses, their strides along the dimension, elements per stride.
        tables: arguments with addresses of tables, and their strides from group to group.
        scratch: returns the bytes of scratch memory for a size.
    """

    family: str
    accumulates: bool
    max_size: int | None
    accumulator: int
    sizes: tuple[int, ...]
    group: int
    pointers: tuple[tuple[int, int, int], ...]
    tables: tuple[tuple[int, int], ...]
    scratch: Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Template:
    """A kernel with the arguments that all its tasks share.

    Attributes:
        spec: the kernel; None if the reference engine runs the task.
        words: arguments; addresses of slots are filled in later.
        slots: operands.
        is_copy: True if the kernel only copies the first slot to the second, in order.
        scratch: bytes of scratch memory that the kernel needs.
        in_place: True if the kernel may write operands that overlap its inputs.
        cost: relative run time, to balance work.
        parallel_dims: dimensions along which calls may be merged.
        after_merging: returns the template of merged calls, which are equally long along the first
            of them, from this template and the arguments of the calls.
        tile: size of a call along the last of them.
        thread_dim: dimension along which a call may be split over threads.
        packing_key: arguments that packed weights depend on: calls with equal ones may reuse the
            packed weights in scratch; empty if the kernel packs nothing.
        reuse: argument that requests the reuse, a ``dpu.words.Reuse``.
        split_dims: dimensions along which operands may be split.
        split: split of the operands; then there are words for each part.
        reduction: dimension that the kernel sums over, if other calls may continue its sums.
        stream: operand worth prefetching.
    """

    spec: KernelSpec | None
    words: tuple[int, ...]
    slots: tuple[Slot, ...]
    is_copy: bool = False
    scratch: int = 0
    in_place: bool = False
    cost: int = 0
    parallel_dims: tuple[ParallelDim, ...] = ()
    after_merging: Callable[[Template, Ints], Template] = lambda template, words: template
    tile: int = 0
    thread_dim: ParallelDim | None = None
    packing_key: tuple[int, ...] = ()
    reuse: int = NO_WORD
    split_dims: tuple[SplitDim, ...] = ()
    split: Split | None = None
    reduction: Reduction | None = None
    stream: Stream | None = None


Check = Callable[[int], object]
"""Checks a task, given by its index, in the reference engine; raises DeviceFault if malformed."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Operations of one template.

    Attributes:
        template: shared kernel and arguments.
        tasks: index in the queue of each operation's task, ascending.
        addresses: device address of each slot, [operations, slots].
    """

    template: Template
    tasks: Ints
    addresses: Ints


def slot(
    word: int,
    access: Access,
    dims: Sequence[Dim],
    element: int,
    offset: int = 0,
) -> Slot:
    """Describe an operand from its dimensions, in any order."""
    real = tuple(filter(is_nontrivial, dims))
    region, dense = cover(real, element)
    return Slot(word, access, real, element, region, dense, offset)


def is_nontrivial(dim: Dim) -> bool:
    """Return whether a dimension has several elements, and a nonzero stride."""
    return dim.length > 1 and dim.stride > 0


def overlaps_itself(dims: Sequence[Dim], element: int) -> bool:
    """Return whether two elements of an operand may share bytes.

    The order of writes then decides the final value, and kernels write in another order than tasks.
    """
    reach = element
    for dim in sorted(dims, key=lambda dim: dim.stride):
        if dim.length > 1:
            if dim.stride < reach:
                return True
            reach += (dim.length - 1) * dim.stride
    return False


def cover(dims: Sequence[Dim], element: int) -> tuple[Region, bool]:
    """Return the region that dimensions cover, and whether they cover it without gaps."""
    width, dense = element, True
    ascending = sorted(dims, key=lambda dim: dim.stride)
    for number, dim in enumerate(ascending):
        if dim.stride > width:
            if number == len(ascending) - 1:
                return Region(dim.length, dim.stride, width), dense
            dense = False
        width += (dim.length - 1) * dim.stride
    return Region(1, width, width), dense


def extent(dims: Sequence[Dim], element: int) -> int:
    """Return the bytes from the first accessed byte to the last, inclusive."""
    return sum((dim.length - 1) * dim.stride for dim in dims) + element
