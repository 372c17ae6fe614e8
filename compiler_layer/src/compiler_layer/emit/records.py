"""Sections of records, and the relocations of their fields."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.elf import Relocation
from driver_layer.abi.layout import Record, RecordArray


@dataclass(frozen=True, slots=True)
class Fixup:
    """A field to be relocated: its offset in the section, relocation type, target and addend."""

    offset: int
    type: Relocation
    target: Hashable
    addend: int


@dataclass(slots=True)
class TaskList:
    """Content of a section of records, and the task number of each record."""

    kind: Record
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    tasks: list[int] = field(default_factory=list[int])
    fixups: list[Fixup] = field(default_factory=list[Fixup])

    def add(self, row: dict[str, Any], task: int) -> int:
        """Append a record; return its offset."""
        self.rows.append(row)
        self.tasks.append(task)
        return (len(self.rows) - 1) * self.kind.itemsize

    def records(self) -> RecordArray:
        """Return the records; fields that a row does not set are zero."""
        return records_of(self.kind, self.rows)


def records_of(kind: Record, rows: Sequence[dict[str, Any]]) -> RecordArray:
    """Build records; bytes that no field covers are zero, which np.array does not guarantee."""
    made = np.zeros(len(rows), kind)
    _fill(made, rows)
    return made


def _fill(made: RecordArray, rows: Sequence[dict[str, Any]]) -> None:
    """Set the fields that rows contain, field by field: numpy sets columns faster than rows."""
    for name in {name: None for row in rows for name in row}:
        values = [row.get(name) for row in rows]
        if made.dtype[name].fields:
            _fill(made[name], [value or {} for value in values])
        elif None in values:
            present = [index for index, value in enumerate(values) if value is not None]
            made[name][present] = [values[index] for index in present]
        else:
            made[name] = values


Columns = npt.NDArray[np.int64]
"""Rows of offset, type, number of the target, addend."""


@dataclass(slots=True)
class Relocations:
    """Relocations of one section; targets are numbered in the order of their appearance."""

    targets: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    parts: list[Columns] = field(default_factory=list[Columns])

    @staticmethod
    def of(fixups: Sequence[Fixup]) -> Relocations:
        """Return the relocations of single fixups."""
        made = Relocations()
        rows = [(f.offset, f.type, made.number(f.target), f.addend) for f in fixups]
        made.parts.append(np.array(rows, np.int64).reshape(-1, 4))
        return made

    def number(self, target: Hashable) -> int:
        """Return the number of a target."""
        return self.targets.setdefault(target, len(self.targets))

    def columns(self) -> Columns:
        """Return all relocations."""
        return np.concatenate(self.parts) if self.parts else np.zeros((0, 4), np.int64)
