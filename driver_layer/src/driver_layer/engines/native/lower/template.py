"""Templates: kernels with the arguments shared by all tasks that differ in addresses alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import NamedTuple

from driver_layer.engines.native.jit.kernels import KernelSpec
from driver_layer.engines.native.lower.arrays import Ints


class Access(IntFlag):
    """The access of a task to an operand."""

    READ = 1
    WRITE = 2


class Dim(NamedTuple):
    """A dimension of an operand."""

    length: int
    stride: int
    """Bytes."""
    word: int
    """The kernel's argument that holds the stride; NO_WORD if it cannot be changed."""


NO_WORD = -1


class Region(NamedTuple):
    """Bytes that an operand covers, from its address on: rows of a width, a pitch apart.

    An operand with more dimensions covers the gaps of the inner ones as well.
    """

    rows: int
    pitch: int
    width: int

    @property
    def extent(self) -> int:
        """Bytes from the first to the last, inclusive."""
        return (self.rows - 1) * self.pitch + self.width


@dataclass(frozen=True, slots=True)
class Slot:
    """An operand.

    Attributes:
        word: the kernel's argument that holds its address; NO_WORD if it cannot be changed.
        access: read, written, or both.
        dims: its dimensions of more than one element and with a stride.
        element: contiguous bytes of an element.
        region: bytes that it covers.
        dense: whether it accesses every byte that it covers.
        offset: bytes from the address in the task to its first element.
    """

    word: int
    access: Access
    dims: tuple[Dim, ...]
    element: int
    region: Region
    dense: bool
    offset: int = 0


class ParallelDim(NamedTuple):
    """A parallel dimension of a kernel: a call may cover more of it, or less, than a task."""

    size: int
    """The argument that holds the trip count."""
    pointers: tuple[tuple[int, int], ...]
    """The arguments that hold addresses, and those that hold their strides along it."""


class Stream(NamedTuple):
    """An operand that a kernel reads once, from first to last byte: its arguments."""

    address: int
    length: int
    stride: int
    """Bytes, of one step of the length."""


class Axis(NamedTuple):
    """The place of a split dimension in an operand."""

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
        size: the argument that holds the size of a part.
        axes: the operands that have it.
        alignment: parts begin at multiples of this.
        pointers: other arguments that hold addresses, and their strides along it.
        count: the argument that holds the number of parts of a call, whose words follow each
            other; NO_WORD if each part needs a call.
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
        whole: the number of the template that was split.
        dim: along which it was split.
        bounds: where parts begin, and the whole size.
        origins: for each slot, the slot of the whole that it lies in, and bytes from its begin.
    """

    whole: int
    dim: SplitDim
    bounds: tuple[int, ...]
    origins: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Reduction:
    """The reduction dimension: an accumulating call may continue where another stops.

    Attributes:
        family: equal for kernels that differ only in whether they accumulate.
        accumulates: whether this kernel does.
        max_size: the largest size whose sums fit into their type; None: any size.
        accumulator: the number of the slot of sums.
        sizes: the arguments that hold its size.
        group: the argument that holds how much of it shares a table entry; NO_WORD if all does.
        pointers: arguments that hold addresses, their strides along it, and elements per stride.
        tables: arguments that hold addresses of tables, and their strides from group to group.
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
        spec: the kernel; None if the reference engine is to run the task.
        words: its arguments; addresses of slots are filled in later.
        slots: its operands.
        is_copy: whether it only copies the first slot to the second, in order.
        scratch: bytes of scratch memory that it needs.
        in_place: whether it may write operands that overlap those that it reads.
        cost: relative run time, to balance work.
        parallel_dims: dimensions along which calls may be merged.
        tile: how much of the last of them a call is to do.
        thread_dim: the dimension along which a call may be split over threads.
        packing_key: the arguments that packed weights depend on: a call with equal ones may reuse
            what is packed in scratch; none if the kernel packs nothing.
        reuse: the argument that requests it, a ``dpu.words.Reuse``.
        split_dims: dimensions along which operands may be split.
        split: how they are split; then there are words for each part.
        reduction: the dimension that it sums over, if other calls may continue its sums.
        stream: an operand worth prefetching.
    """

    spec: KernelSpec | None
    words: tuple[int, ...]
    slots: tuple[Slot, ...]
    is_copy: bool = False
    scratch: int = 0
    in_place: bool = False
    cost: int = 0
    parallel_dims: tuple[ParallelDim, ...] = ()
    tile: int = 0
    thread_dim: ParallelDim | None = None
    packing_key: tuple[int, ...] = ()
    reuse: int = NO_WORD
    split_dims: tuple[SplitDim, ...] = ()
    split: Split | None = None
    reduction: Reduction | None = None
    stream: Stream | None = None


Check = Callable[[int], object]
"""Let the reference engine judge a task by its index; raises DeviceFault if it is malformed."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Operations of one template.

    Attributes:
        template: kernel and arguments that they share.
        tasks: the index in the queue of the task that each belongs to, ascending.
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
    """Describe an operand from its dimensions, whatever their order."""
    real = tuple(filter(is_nontrivial, dims))
    region, dense = cover(real, element)
    return Slot(word, access, real, element, region, dense, offset)


def is_nontrivial(dim: Dim) -> bool:
    """Tell whether a dimension has several elements, and a stride."""
    return dim.length > 1 and dim.stride > 0


def overlaps_itself(dims: Sequence[Dim], element: int) -> bool:
    """Tell whether two elements of an operand may share bytes.

    A task that writes such an operand writes some bytes more than once; the order decides which
    value stays, and kernels have an order of their own.
    """
    reach = element
    for dim in sorted(dims, key=lambda dim: dim.stride):
        if dim.length > 1:
            if dim.stride < reach:
                return True
            reach += (dim.length - 1) * dim.stride
    return False


def cover(dims: Sequence[Dim], element: int) -> tuple[Region, bool]:
    """Return the region that dimensions cover, and whether they do so without gaps."""
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
    """Return the bytes from the first to the last that dimensions access, inclusive."""
    return sum((dim.length - 1) * dim.stride for dim in dims) + element
