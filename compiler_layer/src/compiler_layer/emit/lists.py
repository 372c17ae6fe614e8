"""Task lists: the records of each queue, and what must be relocated in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compiler_layer.emit import dpu
from compiler_layer.emit.dma import descriptor
from compiler_layer.emit.records import Fixup, TaskList, records_of
from compiler_layer.schedule.barriers import Schedule
from compiler_layer.schedule.tasks import (
    Invocation,
    Place,
    Product,
    Region,
    Transfer,
    Window,
)
from compiler_layer.schedule.views import Space
from driver_layer.abi import shave, tasks
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.elf import Relocation
from driver_layer.abi.layout import Record, field_offset
from driver_layer.abi.platforms import CMX_BASE, TILE_SELECT_SHIFT, tile_base

CMX = "cmx"
"""Stands for the CMX workspace as what an address refers to."""


SCRATCH = "scratch"
"""Stands for the scratch region of DDR."""


@dataclass(frozen=True, slots=True)
class BufferKey:
    """Stands for an input, an output or a constant."""

    space: Space
    index: int


Key = tuple[str, int]
"""A list: what it holds, and its tile or port."""


class ListBuilder:
    """Turns a schedule into task lists, SHAVE code and SHAVE arguments."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.lists: dict[Key, TaskList] = {}
        self.text = bytearray()
        self.param_fixups: list[Fixup] = []
        self._params_bytes = 0
        self._heads: list[dict[str, Any]] = []
        self._windows: list[dict[str, Any]] = []
        self._programs: dict[tuple[shave.Instruction, ...], tuple[int, int]] = {}
        self._ranges: dict[tuple[int, int], int] = {}

    def build(self) -> None:
        """Fill the lists."""
        for number, task in enumerate(self._schedule.tasks):
            match task.work:
                case Transfer():
                    self._transfer(number, task.work)
                case Product():
                    self._product(number, task.work)
                case Invocation():
                    self._invocation(number, task.work)

    def _list(self, what: str, where: int, kind: Record) -> TaskList:
        return self.lists.setdefault((what, where), TaskList(kind))

    def _masks(self, number: int) -> tuple[list[int], list[int]]:
        """Wait and post masks: physical barriers, 64 to a word."""
        wait, post = [0, 0], [0, 0]
        for mask, barriers in (
            (wait, self._schedule.waits[number]),
            (post, self._schedule.posts[number]),
        ):
            for barrier in barriers:
                real = barrier % self._schedule.physical
                mask[real // 64] |= 1 << real % 64
        return wait, post

    def _scheduling(self, number: int) -> dict[str, Any]:
        wait, post = self._masks(number)
        after = self._schedule.start_after(number)
        return {"wait_mask": wait, "post_mask": post, "start_after": after, "clean_after": after}

    def _transfer(self, number: int, transfer: Transfer) -> None:
        channel, port = self._schedule.queues[number]
        wait, post = self._masks(number)
        after = self._schedule.start_after(number)
        fields: dict[str, Any] = dict(descriptor(transfer))
        fields |= {"producer_lo": post[0], "producer_hi": post[1]}
        fields |= {"consumer_lo": wait[0], "consumer_hi": wait[1]}
        listed = self._list(channel, port, tasks.DMA_TASK)
        row = {"descriptor": fields, "start_after": after, "clean_after": after}
        offset = listed.add(row)
        for side, place in (("src", transfer.source), ("dst", transfer.target)):
            at = offset + field_offset(tasks.DMA_DESCRIPTOR, side)
            fields[side] = self._dma_address(listed, at, place, transfer.tiles)
        if transfer.rows is not None:
            at = offset + field_offset(tasks.DMA_DESCRIPTOR, "src_list")
            fields["src_list"] = _cmx_word(listed.fixups, at, transfer.rows, transfer.tiles[0])

    def _dma_address(self, listed: TaskList, at: int, place: Place, tiles: Sequence[int]) -> int:
        """Note how an address field is completed; give what it holds before that."""
        if isinstance(place, Region):
            how = Relocation.R_VPU_64_BIT_OR_B21_B26_UNSET
            listed.fixups.append(Fixup(at, how, CMX, _cmx_offset(place)))
            return sum(1 << (TILE_SELECT_SHIFT + tile) for tile in tiles)
        buffer = place.buffer
        addend = place.offset + (buffer.offset if buffer.space is Space.SCRATCH else 0)
        scratch = buffer.space is Space.SCRATCH
        target = SCRATCH if scratch else BufferKey(buffer.space, buffer.index)
        listed.fixups.append(Fixup(at, Relocation.R_VPU_64, target, addend))
        return 0

    def _product(self, number: int, product: Product) -> None:
        invariants = self._list("invariant", product.tile, tasks.DPU_INVARIANT)
        variants = self._list("variant", product.tile, tasks.DPU_VARIANT)
        registers = dpu.registers(product)
        row = {
            "registers": registers,
            "scheduling": self._scheduling(number),
            "variant_count": 1,
            "cluster": product.tile,
        }
        offset = invariants.add(row)
        for name, region in dpu.operands(product).items():
            at = offset + field_offset(tasks.DPU_REGISTERS, f"{name}_address")
            registers[f"{name}_address"] = _cmx_word(invariants.fixups, at, region, product.tile)
        variants.add(
            {
                "m_end": registers["m"],
                "n_end": registers["n"],
                "invariant_index": len(invariants.rows) - 1,
                "cluster": product.tile,
            }
        )

    def _invocation(self, number: int, call: Invocation) -> None:
        index = self._range(call)
        ranges = self.lists["range", call.tile]
        ranges.rows[index]["invocation_count"] += 1
        listed = self._list("invocation", call.tile, tasks.KERNEL_INVOCATION)
        args, size = self._arguments(call)
        offset = listed.add(
            {
                "data_window_base": tile_base(call.tile),
                "scheduling": self._scheduling(number),
                "invocation_index": len(listed.rows),
                "range_index": index,
                "tile": call.tile,
                "args_size": size,
            }
        )
        kind = tasks.KERNEL_INVOCATION
        for name, target, addend in (
            ("range", ("range", call.tile), index * tasks.KERNEL_RANGE.itemsize),
            ("kernel_args", "params", args),
        ):
            at = offset + field_offset(kind, name)
            listed.fixups.append(Fixup(at, Relocation.R_VPU_64, target, addend))

    def _range(self, call: Invocation) -> int:
        """The program's entry in its tile's list of ranges."""
        begin, size = self._text_of(call.program)
        key = (call.tile, begin)
        if key not in self._ranges:
            ranges = self._list("range", call.tile, tasks.KERNEL_RANGE)
            offset = ranges.add({"type": 1, "code_size": size, "invocation_count": 0})
            for name in ("kernel_entry", "text_window_base"):
                at = offset + field_offset(tasks.KERNEL_RANGE, name)
                ranges.fixups.append(Fixup(at, Relocation.R_VPU_64, "text", begin))
            self._ranges[key] = len(ranges.rows) - 1
        return self._ranges[key]

    def _text_of(self, program: tuple[shave.Instruction, ...]) -> tuple[int, int]:
        """Where a program's code begins and how long it is; equal programs are there once."""
        found = self._programs.get(program)
        if found is None:
            code = shave.encode(list(program))
            found = self._programs[program] = (len(self.text), len(code))
            self.text += code
        return found

    @property
    def params(self) -> bytes:
        """The argument blocks of all invocations, one after the other."""
        heads = records_of(shave.KERNEL_ARGS, self._heads).tobytes()
        windows = records_of(shave.WINDOW, self._windows).tobytes()
        parts: list[bytes] = []
        taken = 0
        for number, head in enumerate(self._heads):
            size = shave.KERNEL_ARGS.itemsize
            parts.append(heads[number * size : (number + 1) * size])
            size = head["window_count"] * shave.WINDOW.itemsize
            parts.append(windows[taken : taken + size])
            taken += size
        return b"".join(parts)

    def _arguments(self, call: Invocation) -> tuple[int, int]:
        """Append an argument block; give its offset and size."""
        begin = self._params_bytes
        self._heads.append({"window_count": len(call.windows), "grid": list(call.grid)})
        self._windows += [self._window(window, call.tile) for window in call.windows]
        head = shave.KERNEL_ARGS.itemsize
        at = begin + head + field_offset(shave.WINDOW, "address")
        for number, window in enumerate(call.windows):
            place = at + number * shave.WINDOW.itemsize
            addend = _cmx_offset(window.region)
            self.param_fixups.append(Fixup(place, Relocation.R_VPU_LO_21, CMX, addend))
        size = head + len(call.windows) * shave.WINDOW.itemsize
        self._params_bytes += size
        return begin, size

    def _window(self, window: Window, tile: int) -> dict[str, Any]:
        region = window.region
        return {
            "address": tile_base(tile),
            "cols": region.shape[-1],
            "col_stride": region.strides[-1],
            "strides": [
                stride if d > 1 else 0
                for d, stride in zip(region.shape[:-1], region.strides[:-1], strict=True)
            ],
            "type": ELEMENT_TYPES[region.element].code,
            "access": window.access,
        }


def _cmx_offset(region: Region) -> int:
    assert region.buffer.offset is not None  # order placed it
    return region.buffer.offset + region.offset


def _cmx_word(fixups: list[Fixup], at: int, region: Region, tile: int) -> int:
    """Note how a 32-bit CMX address is completed; give its upper part, which names the tile."""
    fixups.append(Fixup(at, Relocation.R_VPU_LO_21, CMX, _cmx_offset(region)))
    return CMX_BASE | 1 << (TILE_SELECT_SHIFT + tile)
