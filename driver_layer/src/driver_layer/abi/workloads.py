"""Operands of DPU workloads, and the rules for their sizes and places in CMX.

The loader checks all workloads of a blob at once, an engine those of a queue. A workload that obeys
the rules needs memory in proportion to CMX: ``DPU_MAX_ELEMENTS`` bounds operands that strides of 0
repeat, and an output does not overlap itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from driver_layer.abi.dtypes import BY_CODE, FLOAT8, DType
from driver_layer.abi.layout import RecordArray
from driver_layer.abi.platforms import TILE_OFFSET_MASK, tile_base, tile_of
from driver_layer.abi.tasks import DPU_MAX_DIM, DPU_MAX_ELEMENTS, DpuWorkload

FLOATS = frozenset({DType.FP32, DType.FP16, DType.BFP16})
BYTES = frozenset({DType.I8, DType.U8})
NIBBLES = frozenset({DType.I4, DType.U4})

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Problem(NamedTuple):
    """A broken rule.

    Attributes:
        workload: index of the workload.
        message: the problem.
        address: address of the operand concerned, if any.
    """

    workload: int
    message: str
    address: int | None = None


class _Operand(NamedTuple):
    """An operand: its name in the registers, its last dimensions, and its supported types."""

    name: str
    dims: tuple[str, ...]
    kinds: frozenset[DType]


_OPERANDS = (
    _Operand("act", ("batch", "m", "k"), FLOATS | BYTES),
    _Operand("weight", ("batch", "n", "k"), FLOATS | frozenset(FLOAT8) | BYTES | NIBBLES),
    _Operand("out", ("batch", "m", "n"), FLOATS),
    _Operand("scale", ("n", "groups"), FLOATS),
    _Operand("zero", ("n", "groups"), FLOATS | BYTES),
    _Operand("act_scale", ("m",), frozenset({DType.FP32})),
)
_WEIGHT, _OUT, _ACT_SCALE = 1, 2, 5
_SIZES = ("batch", "m", "n", "k")
_RANK = 3


def _members(codes: Iterable[int]) -> Flags:
    return np.isin(np.arange(256), list(codes))


_SUPPORTED = np.stack([_members(operand.kinds) for operand in _OPERANDS])
"""True for each supported type code, by operand."""

_PACKED = _members(NIBBLES)
_ITEMSIZE = np.array(
    [BY_CODE[code].storage.itemsize if code in BY_CODE else 0 for code in range(256)], np.int64
)


def find_problem(registers: RecordArray, tiles: Ints, room: range) -> Problem | None:
    """Return a workload that breaks a rule, or None.

    Args:
        registers: DPU_REGISTERS records, [n].
        tiles: tile of each workload, [n].
        room: offsets in a tile's CMX where operands may lie.
    """
    kinds = registers["workload"]
    if (strange := kinds != DpuWorkload.MATMUL).any():
        at = int(strange.argmax())
        return Problem(at, f"unknown DPU workload {kinds[at]}")
    sizes = np.stack([registers[name] for name in _SIZES])
    if (strange := np.logical_or.reduce((sizes < 1) | (sizes > DPU_MAX_DIM))).any():
        at = int(strange.argmax())
        return Problem(at, f"a workload of {' x '.join(map(str, sizes[:, at]))} is not supported")
    return _misplaced(registers, sizes.astype(np.int64), tiles, room)


_At = tuple[int, int]
"""Number of an operand, and of its workload."""

_Rule = tuple[Flags, Callable[[str, _At], str]]
"""Flags of the operands that break a rule, and the problem of one by its name and number."""


def _misplaced(registers: RecordArray, sizes: Ints, tiles: Ints, room: range) -> Problem | None:
    """Return a workload with an operand that breaks a rule."""
    addresses = np.stack([registers[f"{each.name}_address"] for each in _OPERANDS]).astype(np.int64)
    kinds = _kinds(registers, addresses)
    used = kinds != DType.UNSET
    used[: _OUT + 1] = True
    for broken, describe in _operand_rules(registers, sizes, addresses, kinds, tiles, room):
        if (found := broken & used).any():
            operand, workload = (int(each[0]) for each in found.nonzero())
            message = describe(_OPERANDS[operand].name, (operand, workload))
            return Problem(workload, message, int(addresses[operand, workload]))
    return None


def _operand_rules(
    registers: RecordArray, sizes: Ints, addresses: Ints, kinds: Ints, tiles: Ints, room: range
) -> Iterator[_Rule]:
    """Yield the rules of operands; flags, addresses and kinds are [operands, n]."""
    yield (
        ~np.take_along_axis(_SUPPORTED, kinds, 1),
        lambda name, at: f"type {kinds[at]} is not supported for the DPU's {name}",
    )
    counts, strides, itemsize = _counts(registers, sizes), _strides(registers), _ITEMSIZE[kinds]
    elements = counts.prod(axis=0)
    yield (
        elements > DPU_MAX_ELEMENTS,
        lambda name, at: f"{name} has {elements[at]} elements; the limit is {DPU_MAX_ELEMENTS}",
    )
    packed = _PACKED[kinds[_WEIGHT]]
    counts[-1, _WEIGHT] = (counts[-1, _WEIGHT] + packed) >> packed  # two elements to a byte
    extents = ((counts - 1) * strides).sum(axis=0) + itemsize
    begins = addresses & TILE_OFFSET_MASK
    outside = (begins < room.start) | (begins + extents > room.stop)
    yield (
        outside | (tile_of(addresses) != tile_base(tiles)),
        lambda name, at: (
            f"{extents[at]} bytes of {name} are not all in the CMX of tile {tiles[at[1]]}"
        ),
    )
    crossing = np.zeros(kinds.shape, np.bool_)
    crossing[_OUT] = overlap_themselves(counts[:, _OUT], strides[:, _OUT], itemsize[_OUT])
    yield (
        crossing,
        lambda name, at: f"{name} overlaps itself, strides {strides[(slice(None), *at)].tolist()}",
    )


def _kinds(registers: RecordArray, addresses: Ints) -> Ints:
    """Return the type codes of operands; UNSET for absent tables."""
    kinds = np.full(addresses.shape, DType.FP32, np.int64)
    for number, operand in enumerate(_OPERANDS[:_ACT_SCALE]):
        kinds[number] = registers[f"{operand.name}_type"]
    kinds[_ACT_SCALE, addresses[_ACT_SCALE] == 0] = DType.UNSET
    return kinds


def _counts(registers: RecordArray, sizes: Ints) -> Ints:
    """Return the elements of operands along each dimension, [dims, operands, n]."""
    named: dict[str, Ints] = dict(zip(_SIZES, sizes, strict=True))
    group = registers["group"].astype(np.int64)
    named["groups"] = -(-named["k"] // np.where(group == 0, named["k"], group))
    counts = np.ones((_RANK, len(_OPERANDS), len(registers)), np.int64)
    for number, operand in enumerate(_OPERANDS):
        for dim, name in enumerate(reversed(operand.dims), 1):
            counts[-dim, number] = named[name]
    return counts


def _strides(registers: RecordArray) -> Ints:
    """Return the strides of operands in bytes, [dims, operands, n]."""
    strides = np.zeros((_RANK, len(_OPERANDS), len(registers)), np.int64)
    for number, operand in enumerate(_OPERANDS[:_ACT_SCALE]):
        strides[-len(operand.dims) :, number] = registers[f"{operand.name}_strides"].T
    strides[-1, _ACT_SCALE] = registers["act_scale_stride"]
    return strides


def overlap_themselves(counts: Ints, strides: Ints, element: Ints) -> Flags:
    """Return which operands may have two elements that share bytes.

    Args:
        counts: elements along each dimension, [dims, n].
        strides: strides in bytes, [dims, n].
        element: bytes of an element, [n].
    """
    order = np.argsort(strides, axis=0)
    steps, many = np.take_along_axis(strides, order, 0), np.take_along_axis(counts, order, 0)
    reached = (many - 1) * steps
    behind = np.cumsum(reached, axis=0) - reached + element
    return np.logical_or.reduce((many > 1) & (steps < behind))
