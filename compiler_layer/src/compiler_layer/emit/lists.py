"""Task lists: the records of each queue, their relocations, and the SHAVE programs they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler_layer.emit import dpu
from compiler_layer.emit.dma import descriptor
from compiler_layer.emit.records import Fixup, TaskList, records_of
from compiler_layer.emit.tiles import is_tile
from compiler_layer.schedule.barriers import Schedule
from compiler_layer.schedule.tasks import (
    Invocation,
    MatMulTask,
    Place,
    Region,
    Transfer,
    Window,
)
from driver_layer.abi import shave, tasks
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.elf import Relocation
from driver_layer.abi.layout import Record, field_offset
from driver_layer.abi.platforms import CMX_BASE, TILE_SELECT_SHIFT, tile_base

CMX = "cmx"
"""Relocation target: the CMX workspace."""


TEXT = "text"
"""Relocation target: the code of all programs."""

PARAMS = "params"
"""Relocation target: the arguments of SHAVE programs."""


_OF_TILE = {"src": Relocation.R_VPU_DMA_TASK_INPUT, "dst": Relocation.R_VPU_DMA_TASK_OUTPUT}
"""Relocations of a descriptor's sides for an argument whose strides the caller chooses."""

Key = tuple[str, int]
"""Key of a list: its kind, and its tile or port."""


@dataclass(slots=True)
class Programs:
    """Collector of programs; equal programs are stored once."""

    text: bytearray = field(default_factory=bytearray)
    ranges: dict[int, TaskList] = field(default_factory=dict[int, TaskList])
    _places: dict[tuple[shave.Instruction, ...], tuple[int, int]] = field(
        default_factory=dict[tuple[shave.Instruction, ...], tuple[int, int]]
    )
    _entries: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def used(self, tile: int, program: tuple[shave.Instruction, ...], times: int) -> int:
        """Add runs of a program on a tile; return its entry in the tile's list."""
        begin, size = self._place(program)
        ranges = self.ranges.setdefault(tile, TaskList(tasks.KERNEL_RANGE))
        entry = self._entries.get((tile, begin))
        if entry is None:
            entry = self._entries[tile, begin] = len(ranges.rows)
            offset = ranges.add({"type": 1, "code_size": size, "invocation_count": 0}, 0)
            for name in ("kernel_entry", "text_window_base"):
                at = offset + field_offset(tasks.KERNEL_RANGE, name)
                ranges.fixups.append(Fixup(at, Relocation.R_VPU_64, TEXT, begin))
        ranges.rows[entry]["invocation_count"] += times
        return entry

    def _place(self, program: tuple[shave.Instruction, ...]) -> tuple[int, int]:
        """Return the offset and the length of a program's code."""
        found = self._places.get(program)
        if found is None:
            code = shave.encode(list(program))
            found = self._places[program] = (len(self.text), len(code))
            self.text += code
        return found


class ListBuilder:
    """Task lists and SHAVE arguments of a phase's schedule, for one run of the phase.

    The records have no barriers yet, and no fields that depend on the begin of the lists.

    Args:
        schedule: the phase's schedule.
        programs: SHAVE programs of all phases; those of this phase are added.
        runs: number of runs of the phase.
    """

    def __init__(self, schedule: Schedule, programs: Programs, runs: int) -> None:
        self._schedule = schedule
        self._shave = programs
        self._runs = runs
        self.lists: dict[Key, TaskList] = {}
        self.param_fixups: list[Fixup] = []
        self.params_bytes = 0
        self._heads: list[dict[str, Any]] = []
        self._windows: list[dict[str, Any]] = []
        for number, task in enumerate(schedule.tasks):
            match task.work:
                case Transfer():
                    self._transfer(number, task.work)
                case MatMulTask():
                    self._product(number, task.work)
                case Invocation():
                    self._invocation(number, task.work)

    def _list(self, what: str, where: int, kind: Record) -> TaskList:
        return self.lists.setdefault((what, where), TaskList(kind))

    def _transfer(self, number: int, transfer: Transfer) -> None:
        channel, port = self._schedule.queues[number]
        fields: dict[str, Any] = dict(descriptor(transfer))
        listed = self._list(channel, port, tasks.DMA_TASK)
        offset = listed.add({"descriptor": fields}, number)
        for side, place in (("src", transfer.source), ("dst", transfer.target)):
            if is_tile(place):
                listed.fixups.append(Fixup(offset, _OF_TILE[side], place, 0))
                continue
            at = offset + field_offset(tasks.DMA_DESCRIPTOR, side)
            fields[side] = self._dma_address(listed, at, place, transfer.tiles)
        if transfer.rows is not None:
            at = offset + field_offset(tasks.DMA_DESCRIPTOR, "src_list")
            fields["src_list"] = _cmx_word(listed.fixups, at, transfer.rows, transfer.tiles[0])

    def _dma_address(self, listed: TaskList, at: int, place: Place, tiles: Sequence[int]) -> int:
        """Add the fixup of an address field; return the field's initial value."""
        if isinstance(place, Region):
            how = Relocation.R_VPU_64_BIT_OR_B21_B26_UNSET
            listed.fixups.append(Fixup(at, how, CMX, _cmx_offset(place)))
            return sum(1 << (TILE_SELECT_SHIFT + tile) for tile in tiles)
        listed.fixups.append(Fixup(at, Relocation.R_VPU_64, place.buffer, place.offset))
        return 0

    def _product(self, number: int, product: MatMulTask) -> None:
        invariants = self._list("invariant", product.tile, tasks.DPU_INVARIANT)
        variants = self._list("variant", product.tile, tasks.DPU_VARIANT)
        registers = dpu.registers(product)
        row = {
            "registers": registers,
            "variant_count": 1,
            "cluster": product.tile,
        }
        offset = invariants.add(row, number)
        for name, region in dpu.operands(product).items():
            at = offset + field_offset(tasks.DPU_REGISTERS, f"{name}_address")
            registers[f"{name}_address"] = _cmx_word(invariants.fixups, at, region, product.tile)
        variants.add(
            {
                "m_end": registers["m"],
                "n_end": registers["n"],
                "invariant_index": len(invariants.rows) - 1,
                "cluster": product.tile,
            },
            number,
        )

    def _invocation(self, number: int, call: Invocation) -> None:
        index = self._shave.used(call.tile, call.program, self._runs)
        listed = self._list("invocation", call.tile, tasks.KERNEL_INVOCATION)
        args, size = self._arguments(call)
        row = {
            "data_window_base": tile_base(call.tile),
            "invocation_index": len(listed.rows),
            "range_index": index,
            "tile": call.tile,
            "args_size": size,
        }
        offset = listed.add(row, number)
        kind = tasks.KERNEL_INVOCATION
        for name, target, addend in (
            ("range", ("range", call.tile), index * tasks.KERNEL_RANGE.itemsize),
            ("kernel_args", PARAMS, args),
        ):
            at = offset + field_offset(kind, name)
            listed.fixups.append(Fixup(at, Relocation.R_VPU_64, target, addend))

    @property
    def params(self) -> bytes:
        """Argument blocks of all invocations, one after the other."""
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
        """Append an argument block; return its offset and size."""
        begin = self.params_bytes
        self._heads.append({"window_count": len(call.windows), "grid": list(call.grid)})
        self._windows += [self._window(window, call.tile) for window in call.windows]
        head = shave.KERNEL_ARGS.itemsize
        at = begin + head + field_offset(shave.WINDOW, "address")
        for number, window in enumerate(call.windows):
            place = at + number * shave.WINDOW.itemsize
            addend = _cmx_offset(window.region)
            self.param_fixups.append(Fixup(place, Relocation.R_VPU_LO_21, CMX, addend))
        size = head + len(call.windows) * shave.WINDOW.itemsize
        self.params_bytes += size
        return begin, size

    def _window(self, window: Window, tile: int) -> dict[str, Any]:
        region = window.region
        return {
            "address": tile_base(tile),
            "cols": region.shape[-1],
            "col_stride": region.strides[-1],
            "strides": dpu.repeating(region)[:-1],
            "type": ELEMENT_TYPES[region.element].code,
            "access": window.access,
        }


def _cmx_offset(region: Region) -> int:
    assert region.buffer.offset is not None  # placed by ``schedule.order``
    return region.buffer.offset + region.offset


def _cmx_word(fixups: list[Fixup], at: int, region: Region, tile: int) -> int:
    """Add the fixup of a 32-bit CMX address; return the upper part, which selects the tile."""
    fixups.append(Fixup(at, Relocation.R_VPU_LO_21, CMX, _cmx_offset(region)))
    return CMX_BASE | 1 << (TILE_SELECT_SHIFT + tile)
