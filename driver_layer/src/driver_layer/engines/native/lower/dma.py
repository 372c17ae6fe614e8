"""Lowering of transfers: one operation for each destination."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from driver_layer.abi.layout import RecordArray
from driver_layer.abi.platforms import (
    CMX_BASE,
    TILE_OFFSET_MASK,
    TILE_SELECT_MASK,
    TILE_SELECT_SHIFT,
    tile_base,
)
from driver_layer.abi.tasks import DmaCfg
from driver_layer.engines.native.dma.kernels import (
    DIMS,
    FILL,
    GATHER,
    CopyWord,
    FillWord,
    GatherWord,
    copy_kernel,
)
from driver_layer.engines.native.dma.shapes import TransferSide, joint_dims
from driver_layer.engines.native.lower.arrays import Ints, equal_rows
from driver_layer.engines.native.lower.template import (
    NO_WORD,
    Access,
    Check,
    Dim,
    Group,
    Slot,
    Template,
    overlaps_itself,
    slot,
)
from driver_layer.npu.bus import Bus
from driver_layer.npu.program import DmaWork

_ADDRESS = (1 << 48) - 1
_STRIDED = 5
_MODE = int(DmaCfg.MEMSET_EN | DmaCfg.SRC_LIST | DmaCfg.NUM_DIM)

_KEY_COLUMNS = 24
_CFG, _VALUE, _SRC, _DST = 0, 1, 2, 13
_SIDE = 1 + 2 * _STRIDED


def dma_operations(work: DmaWork, bus: Bus, check: Check) -> list[Group]:
    """Lower the transfers of a queue, grouped by template.

    Args:
        work: transfers of the queue.
        bus: memory; a gather's table may extend to the end of its allocation.
        check: checks a task in the reference engine.
    """
    records = work.descriptors
    keys = _keys(records)
    first, group_of = equal_rows(keys)
    addresses = np.stack(
        [records[name].astype(np.int64) & _ADDRESS for name in ("src", "dst")], axis=1
    )
    groups: list[Group] = []
    for number in range(len(first)):
        tasks = np.flatnonzero(group_of == number)
        check(int(tasks[0]))
        key: tuple[int, ...] = tuple(keys[first[number]].tolist())
        if key[_CFG] & DmaCfg.SRC_LIST == DmaCfg.SRC_LIST_RELATIVE:
            for task in tasks.tolist():
                check(task)
                groups.append(_gather(records[task], key, task, bus))
            continue
        template = _fill(key) if key[_CFG] & DmaCfg.MEMSET_EN else _copy(key)
        tasks, places = _each_destination(tasks, addresses[tasks])
        columns = places[:, 2 - len(template.slots) :]  # a fill has no source
        groups.append(Group(template, tasks, columns))
    return groups


def _keys(records: RecordArray) -> Ints:
    """Return the fields that select templates, without addresses and barriers; 0 if unused."""
    keys = np.zeros((len(records), _KEY_COLUMNS), np.int64)
    keys[:, _CFG] = records["cfg"].astype(np.int64) & _MODE
    used = keys[:, _CFG] & DmaCfg.NUM_DIM
    keys[:, _VALUE] = records["memset_data"].astype(np.int64) & 0xFF
    for side, begin in (("src", _SRC), ("dst", _DST)):
        keys[:, begin] = records[f"{side}_width"]
        for dim in range(1, _STRIDED + 1):
            at = begin + 2 * dim - 1
            counts = records[f"{side}_dim{dim}"].astype(np.int64) + 1
            keys[:, at] = np.where(dim <= used, counts, 1)
            keys[:, at + 1] = np.where(dim <= used, records[f"{side}_stride{dim}"], 0)
    return keys


def _side(key: Sequence[int], begin: int) -> TransferSide:
    pairs = [(key[at], key[at + 1]) for at in range(begin + 1, begin + _SIDE, 2)]
    return TransferSide(key[begin], tuple(reversed(pairs)))


@lru_cache(maxsize=4096)
def _copy(key: tuple[int, ...]) -> Template:
    src, dst = _side(key, _SRC), _side(key, _DST)
    joint = joint_dims(src, dst)
    crossing = overlaps_itself([Dim(*dim, NO_WORD) for dim in dst.dims], dst.width)
    if joint is None or len(joint[1]) > DIMS or crossing:
        return Template(None, (), (_pinned(src, Access.READ), _pinned(dst, Access.WRITE)))
    width, dims = joint
    words = [0] * CopyWord.WORDS
    words[CopyWord.WIDTH] = width
    _put_counts(words, CopyWord.COUNTS, [dim.length for dim in dims])
    here = [(dim.length, dim.src_stride) for dim in dims]
    there = [(dim.length, dim.dst_stride) for dim in dims]
    source = _operand(words, CopyWord.SRC, Access.READ, CopyWord.SRC_STRIDES, here, width)
    target = _operand(words, CopyWord.DST, Access.WRITE, CopyWord.DST_STRIDES, there, width)
    return Template(copy_kernel(width), tuple(words), (source, target), is_copy=True)


@lru_cache(maxsize=256)
def _fill(key: tuple[int, ...]) -> Template:
    dst = _side(key, _DST)
    words = [0] * FillWord.WORDS
    words[FillWord.VALUE] = key[_VALUE]
    words[FillWord.WIDTH] = dst.width
    dims = [dim for dim in dst.dims if dim[0] > 1]
    _put_counts(words, FillWord.COUNTS, [count for count, _ in dims])
    strides = FillWord.DST_STRIDES
    target = _operand(words, FillWord.DST, Access.WRITE, strides, dims, dst.width)
    return Template(FILL, tuple(words), (target,))


def _gather(record: RecordArray, key: Sequence[int], task: int, bus: Bus) -> Group:
    """Lower a gather; a table without a row count extends to the end of its allocation."""
    table, rows_at, dst = (int(record[name]) & _ADDRESS for name in ("src", "src_list", "dst"))
    width, count, pitch = key[_SRC], int(record["src_dim1"]) + 1, int(record["src_stride1"])
    allocation = bus.allocation(table)
    room = 0 if allocation is None else allocation.end - table
    length = int(record["src_dim2"]) or (room - width) // pitch + 1
    side = _side(key, _DST)
    words = [0] * GatherWord.WORDS
    words[GatherWord.COUNT], words[GatherWord.PITCH], words[GatherWord.WIDTH] = count, pitch, width
    words[GatherWord.ROWS] = length
    target = _pinned(side, Access.WRITE)
    places = _each_destination(np.array([task]), np.array([[table, dst]]))[1][:, 1]
    slots = (
        slot(GatherWord.TABLE, Access.READ, (), (length - 1) * pitch + width),
        slot(GatherWord.LIST, Access.READ, (), 8 * count),
        *(slot(GatherWord.DST, Access.WRITE, (), target.region.extent) for _ in places),
    )
    # The reference engine runs gathers that write several tiles, or with gaps.
    simple = target.dense and target.region.rows == 1 and len(places) == 1
    template = Template(GATHER if simple else None, tuple(words) if simple else (), slots)
    return Group(template, np.array([task]), np.array([[table, rows_at, *places.tolist()]]))


def _pinned(side: TransferSide, access: Access) -> Slot:
    dims = [Dim(count, stride, NO_WORD) for count, stride in side.dims]
    return slot(NO_WORD, access, dims, side.width)


def _put_counts(words: list[int], base: int, counts: Sequence[int]) -> None:
    words[base : base + DIMS] = [1] * (DIMS - len(counts)) + list(counts)


def _operand(
    words: list[int],
    pointer: int,
    access: Access,
    strides: int,
    dims: Sequence[tuple[int, int]],
    element: int,
) -> Slot:
    """Put an operand's strides into the words from ``strides`` on; return its slot."""
    first = strides + DIMS - len(dims)
    words[first : strides + DIMS] = [stride for _, stride in dims]
    named = [Dim(count, stride, first + i) for i, (count, stride) in enumerate(dims)]
    return slot(pointer, access, named, element)


def _each_destination(tasks: Ints, addresses: Ints) -> tuple[Ints, Ints]:
    """Repeat transfers to several tiles, once for each tile; ``addresses`` is (src, dst)."""
    dst = addresses[:, 1]
    in_cmx = dst & ~(TILE_SELECT_MASK | TILE_OFFSET_MASK) == CMX_BASE
    # An address that selects no tile stays unchanged; translation will reject it.
    in_cmx &= dst & TILE_SELECT_MASK != 0
    masks = np.where(in_cmx, (dst & TILE_SELECT_MASK) >> TILE_SELECT_SHIFT, 1)
    if not (masks & (masks - 1)).any():
        return tasks, addresses
    repeated: list[Ints] = []
    places: list[Ints] = []
    for tile in range(TILE_SELECT_MASK.bit_count()):
        chosen = np.flatnonzero(masks >> tile & 1)
        moved = addresses[chosen].copy()
        here = in_cmx[chosen]
        moved[here, 1] = (moved[here, 1] & TILE_OFFSET_MASK) | tile_base(tile)
        repeated.append(tasks[chosen])
        places.append(moved)
    order = np.argsort(np.concatenate(repeated), kind="stable")
    return np.concatenate(repeated)[order], np.concatenate(places)[order]
