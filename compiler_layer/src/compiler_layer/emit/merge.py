"""Task lists of a complete program, merged from the lists of its phases.

The records of a phase are copied as arrays, once for each run. Then the fields that differ are
written: barriers, indices into other lists, and buffers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from compiler_layer.emit.lists import PARAMS, Key, ListBuilder, Programs
from compiler_layer.emit.records import Columns, Relocations, TaskList
from compiler_layer.emit.stamp import Stamps
from compiler_layer.schedule.program import Phase, Run, ScheduledProgram
from compiler_layer.schedule.views import Buffer
from driver_layer.abi.layout import Record, RecordArray

_FOLLOWS = {
    "variant": ("invariant_index", "invariant"),
    "invocation": ("invocation_index", "invocation"),
}
"""Fields that are an index into another list of the same tile."""


@dataclass(slots=True)
class MergedList:
    """Content of a section of records."""

    kind: Record
    parts: list[RecordArray] = field(default_factory=list[RecordArray])
    relocations: Relocations = field(default_factory=Relocations)
    count: int = 0

    def content(self) -> bytes:
        """Return the section's bytes."""
        return b"".join(part.tobytes() for part in self.parts)


class MergedLists:
    """All sections of records of a program, and the arguments and code of SHAVE programs."""

    def __init__(self, program: ScheduledProgram) -> None:
        self.programs = Programs()
        self.lists: dict[Key, MergedList] = {}
        self.params = bytearray()
        self.params_relocations = Relocations()
        self._barriers = 0
        for phase in program.phases:
            self._append(phase)
        for tile, ranges in self.programs.ranges.items():
            merged = MergedList(ranges.kind, [ranges.records()], count=len(ranges.rows))
            merged.relocations = Relocations.of(ranges.fixups)
            self.lists["range", tile] = merged

    def _append(self, phase: Phase) -> None:
        runs = len(phase.runs)
        built = ListBuilder(phase.schedule, self.programs, runs)
        stamps = Stamps(phase.schedule, self._barriers)
        begins = {key: merged.count for key, merged in self.lists.items()}
        for key, listed in built.lists.items():
            records = _copied(listed.records(), runs)
            if key[0] != "variant":
                stamps.stamp(records, listed, runs)
            self._renumber(records, key, built.lists, begins)
            merged = self.lists.setdefault(key, MergedList(listed.kind))
            self._relocate(merged, listed, built, phase.runs)
            merged.parts.append(records.reshape(-1))
            merged.count += records.size
        self._append_params(built, runs)
        self._barriers += runs * len(phase.schedule.barriers)

    def _renumber(
        self,
        records: RecordArray,
        key: Key,
        lists: Mapping[Key, TaskList],
        begins: Mapping[Key, int],
    ) -> None:
        if key[0] not in _FOLLOWS:
            return
        name, what = _FOLLOWS[key[0]]
        other = (what, key[1])
        begin, step = begins.get(other, 0), len(lists[other].rows)
        records[name] += (begin + step * np.arange(len(records))).astype(np.uint32)[:, None]

    def _relocate(
        self, merged: MergedList, listed: TaskList, built: ListBuilder, runs: Sequence[Run]
    ) -> None:
        own = Relocations.of(listed.fixups)
        columns = _repeated(own.columns(), len(runs))
        numbers = np.arange(len(runs))[:, None]
        size = listed.kind.itemsize
        columns[..., 0] += (merged.count + len(listed.rows) * numbers) * size
        if PARAMS in own.targets:
            begins = len(self.params) + built.params_bytes * numbers
            columns[..., 3] += np.where(columns[..., 2] == own.targets[PARAMS], begins, 0)
        columns[..., 2] = _targets(merged.relocations, own.targets, runs, columns[..., 2])
        merged.relocations.parts.append(columns.reshape(-1, 4))

    def _append_params(self, built: ListBuilder, runs: int) -> None:
        own = Relocations.of(built.param_fixups)
        columns = _repeated(own.columns(), runs)
        begins = len(self.params) + built.params_bytes * np.arange(runs)[:, None]
        columns[..., 0] += begins
        everywhere = [Run({}, 0)] * runs
        columns[..., 2] = _targets(
            self.params_relocations, own.targets, everywhere, columns[..., 2]
        )
        self.params_relocations.parts.append(columns.reshape(-1, 4))
        self.params += built.params * runs


def _copied(records: RecordArray, runs: int) -> RecordArray:
    """Return records [runs, rows], copied as bytes: numpy skips bytes that no field covers."""
    copied = bytearray(records.tobytes() * runs)
    return np.frombuffer(copied, records.dtype).reshape(runs, len(records))


def _repeated(columns: Columns, runs: int) -> Columns:
    return np.tile(columns, (runs, 1, 1))


def _targets(
    merged: Relocations, targets: Mapping[Hashable, int], runs: Sequence[Run], own: Columns
) -> Columns:
    """Return the targets' numbers in the merged section, with the buffers of each run."""
    table = np.zeros((len(runs), len(targets)), np.int64)
    for number, run in enumerate(runs):
        for target, place in targets.items():
            actual = run.buffers.get(target, target) if isinstance(target, Buffer) else target
            table[number, place] = merged.number(actual)
    return np.take_along_axis(table, own, axis=1) if own.size else own
