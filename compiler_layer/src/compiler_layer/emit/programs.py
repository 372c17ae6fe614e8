"""SHAVE programs of a blob: their code, and the kernel ranges of each tile."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler_layer.emit.records import Fixup, TaskList
from driver_layer.abi import shave, tasks
from driver_layer.abi.elf import Relocation
from driver_layer.abi.layout import field_offset

TEXT = "text"
"""Relocation target: the code of all programs."""


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
