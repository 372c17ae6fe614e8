"""Relocations of a section, as arrays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from compiler_layer.emit.records import Fixup

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
