"""Templates: what tasks that differ in their addresses alone have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import NamedTuple

from driver_layer.engines.native.jit.kernels import KernelSpec


class Access(IntFlag):
    """What a task does with an operand."""

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

    What has more dimensions than that covers the gaps of the inner ones as well.
    """

    rows: int
    pitch: int
    width: int

    @property
    def extent(self) -> int:
        """Bytes from the first to behind the last."""
        return (self.rows - 1) * self.pitch + self.width


@dataclass(frozen=True, slots=True)
class Slot:
    """An operand.

    Attributes:
        word: the kernel's argument that holds its address; NO_WORD if it cannot be changed.
        access: what is done with it.
        dims: its dimensions of more than one element and with a stride.
        element: bytes that stay together, whatever the strides.
        region: what it covers.
        dense: whether it covers no byte that it does not reach.
        offset: bytes from the address that tasks give it to its first element.
    """

    word: int
    access: Access
    dims: tuple[Dim, ...]
    element: int
    region: Region
    dense: bool
    offset: int = 0


class Growth(NamedTuple):
    """A dimension along which a kernel can do more, or less, than a task's worth."""

    size: int
    """The argument that says how much."""
    moved: tuple[tuple[int, int], ...]
    """The arguments that hold addresses, and their strides along it."""


class Stream(NamedTuple):
    """What a kernel reads once, from its first byte to its last: the arguments that tell."""

    address: int
    length: int
    stride: int
    """Bytes; of one step of the length."""


class Axis(NamedTuple):
    """Where an operand has the dimension of a cut."""

    slot: int
    """The number of the operand."""
    dim: int
    """The number of the dimension among its own."""
    step: int
    """How much of the cut's size a step along it is."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A dimension along which operands may lie in parts.

    Attributes:
        size: the argument that says how much of it a part is.
        axes: the operands that have it.
        multiple: parts begin at multiples of this.
        moved: other arguments that hold addresses, and their strides along it.
        count: the argument that says how many parts a call is given, whose words follow each
            other; NO_WORD if there must be a call for each part.
    """

    size: int
    axes: tuple[Axis, ...]
    multiple: int
    moved: tuple[tuple[int, int], ...]
    count: int


@dataclass(frozen=True, slots=True)
class Parts:
    """How a template has come of another by a cut.

    Attributes:
        whole: the number of the other.
        cut: the dimension.
        borders: where parts begin, and the whole size.
        origins: for each slot, which one of the other it lies in, and bytes from its begin.
    """

    whole: int
    cut: Cut
    borders: tuple[int, ...]
    origins: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Depth:
    """The dimension that is summed over: what accumulates may go on where another stops.

    Attributes:
        family: equal for kernels that differ in nothing but whether they accumulate.
        accumulates: whether this one does.
        most: the largest size whose sums fit into their type; None: any does.
        out: the number of the slot of sums.
        sizes: the arguments that say how much of it there is.
        group: the argument that says how much of it shares a place in tables; NO_WORD if all does.
        moved: arguments that hold addresses, their strides along it, and how much a stride is.
        tables: arguments that hold addresses of tables, and their strides from group to group.
        scratch: gives the bytes of scratch memory for a size.
    """

    family: str
    accumulates: bool
    most: int | None
    out: int
    sizes: tuple[int, ...]
    group: int
    moved: tuple[tuple[int, int, int], ...]
    tables: tuple[tuple[int, int], ...]
    scratch: Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Template:
    """A kernel with the arguments that are the same for all tasks.

    Attributes:
        spec: the kernel; None if the reference engine is to run the task.
        words: its arguments; those of the slots are put in later.
        slots: its operands.
        copies: whether it does nothing but copy the first slot to the second, in order.
        scratch: bytes of scratch memory that it needs.
        in_place: whether it may write where it reads, as its operands are.
        cost: what it takes, compared with others; only to share work out.
        growths: the dimensions along which calls may be merged.
        part: how much of the last of them a call is to do.
        shares: the dimension along which a call may be cut for threads to share it.
        kept: the arguments that say what the kernel may keep in scratch for a call that has equal
            ones; none if it keeps nothing.
        reuse: the argument that tells it to, a ``dpu.words.Reuse``.
        cuts: the dimensions along which operands may lie in parts.
        parts: which parts they lie in; then there are words for each of these.
        depth: the dimension that it sums over, if others may go on with its sums.
        stream: what is worth fetching before it begins.
    """

    spec: KernelSpec | None
    words: tuple[int, ...]
    slots: tuple[Slot, ...]
    copies: bool = False
    scratch: int = 0
    in_place: bool = False
    cost: int = 0
    growths: tuple[Growth, ...] = ()
    part: int = 0
    shares: Growth | None = None
    kept: tuple[int, ...] = ()
    reuse: int = NO_WORD
    cuts: tuple[Cut, ...] = ()
    parts: Parts | None = None
    depth: Depth | None = None
    stream: Stream | None = None


def slot(
    word: int,
    access: Access,
    dims: Sequence[Dim],
    element: int,
    offset: int = 0,
) -> Slot:
    """Describe an operand from its dimensions, whatever their order."""
    real = tuple(filter(is_real, dims))
    region, dense = cover(real, element)
    return Slot(word, access, real, element, region, dense, offset)


def is_real(dim: Dim) -> bool:
    """Tell whether a dimension leads anywhere."""
    return dim.length > 1 and dim.stride > 0


def overlaps_itself(dims: Sequence[Dim], element: int) -> bool:
    """Tell whether two elements of an operand may share bytes.

    Whoever writes such an operand writes some bytes more than once; which value stays depends on
    the order, and kernels have one of their own.
    """
    reach = element
    for dim in sorted(dims, key=lambda dim: dim.stride):
        if dim.length > 1:
            if dim.stride < reach:
                return True
            reach += (dim.length - 1) * dim.stride
    return False


def cover(dims: Sequence[Dim], element: int) -> tuple[Region, bool]:
    """Find what dimensions cover, and whether without gaps."""
    width, dense = element, True
    ascending = sorted(dims, key=lambda dim: dim.stride)
    for number, dim in enumerate(ascending):
        if dim.stride > width:
            if number == len(ascending) - 1:
                return Region(dim.length, dim.stride, width), dense
            dense = False
        width += (dim.length - 1) * dim.stride
    return Region(1, width, width), dense
