"""Rows, units and phases of a program's operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from driver_layer.engines.native.dispatch.fallback import PythonRow
from driver_layer.engines.native.dispatch.table import Table
from driver_layer.engines.native.dpu import Reuse
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.forward import Forwarding
from driver_layer.engines.native.lower.groups import Ints, equal_rows
from driver_layer.engines.native.lower.moves import find_ways
from driver_layer.engines.native.lower.template import NO_WORD
from driver_layer.engines.native.lower.walk import NONE


@dataclass(frozen=True, slots=True, eq=False)
class Flattened:
    """A table, and the operation of each of its rows."""

    table: Table
    operations: Ints


class _Arguments:
    """The arguments of all operations, one after the other.

    Attributes:
        pool: all words.
        begin: where each operation's begin.
    """

    def __init__(self, accesses: Accesses, python: Flags) -> None:
        words = np.array([len(one.words) for one in accesses.templates], np.int64)
        counts = np.where(python, 0, words[accesses.template])
        self.begin: Ints = np.concatenate([[0], np.cumsum(counts)])
        self.pool: Ints = np.zeros(int(self.begin[-1]), np.int64)
        for number, template in enumerate(accesses.templates):
            members = np.flatnonzero((accesses.template == number) & ~python)
            block = np.tile(np.array(template.words, np.int64), (len(members), 1))
            for index, slot in enumerate(template.slots):
                if slot.word != NO_WORD:
                    block[:, slot.word] = accesses.hosts[accesses.first[members] + index]
            places = self.begin[members, None] + np.arange(len(template.words))
            self.pool[places] = block

    def move(self, accesses: Accesses, forwarding: Forwarding) -> None:
        """Let the accesses that go through a copy begin, and step, as on its other side."""
        owners = accesses.owners
        for way in find_ways(accesses, forwarding.copies):
            assert way.moved is not None  # or it would not go there
            begins = self.begin[owners[way.accesses]]
            self.pool[begins + way.operand.word] = accesses.hosts[way.far] + way.moved.offset
            for word, stride in way.moved.strides:
                self.pool[begins + word] = stride


def flatten(
    accesses: Accesses,
    forwarding: Forwarding,
    levels: Ints,
    kernels: Kernels,
    python: dict[int, Callable[[], None]],
) -> Flattened:
    """Make the native table.

    Args:
        accesses: all operations.
        forwarding: which of them are left out, and what goes through copies.
        levels: what may run side by side.
        kernels: of the host.
        python: operations that the reference engine runs.
    """
    in_python = np.zeros(len(accesses), np.bool_)
    in_python[list(python)] = True
    arguments = _Arguments(accesses, in_python)
    arguments.move(accesses, forwarding)
    order, units = _units(accesses, levels, arguments)
    rows = np.zeros((len(order), 2), np.int64)
    used: list[int] = np.unique(accesses.template[order]).tolist()
    addresses = np.zeros(len(accesses.templates), np.int64)
    for number in used:
        spec = accesses.templates[number].spec
        addresses[number] = 0 if spec is None else kernels.address(spec)
    rows[:, 0] = addresses[accesses.template[order]]
    rows[:, 1] = arguments.pool.ctypes.data + 8 * arguments.begin[order]
    calls = {operation: PythonRow(run) for operation, run in python.items()}
    for row in np.flatnonzero(in_python[order]).tolist():
        rows[row] = calls[int(order[row])].address, 0
    level_of_unit = levels[order[units[:-1]]]
    count = int(levels.max(initial=NONE)) + 1
    phases: Ints = np.searchsorted(level_of_unit, np.arange(count + 1)).astype(np.int64)
    scratch = max((accesses.templates[number].scratch for number in used), default=0)
    keep = (arguments.pool, calls)
    return Flattened(Table(rows, units, phases, scratch, keep), order)


def _units(accesses: Accesses, levels: Ints, arguments: _Arguments) -> tuple[Ints, Ints]:
    """Put operations in the order of rows, and cut them into units.

    Within a level the largest come first, so that threads end together. Operations whose kernel
    keeps the same weights follow each other on one thread.
    """
    live = np.flatnonzero(levels >= 0)
    kept = _kept_weights(accesses, live, arguments)
    cost = np.array([one.cost for one in accesses.templates], np.float64)
    costs = cost[accesses.template[live]]
    order = np.lexsort((live, kept, -costs, levels[live]))
    live, kept = live[order], kept[order]
    level = levels[live]
    same = (kept[1:] == kept[:-1]) & (kept[1:] >= 0) & (level[1:] == level[:-1])
    follows, precedes = np.append(False, same), np.append(same, False)
    for row in np.flatnonzero(kept >= 0).tolist():
        template = accesses.templates[int(accesses.template[live[row]])]
        alone = Reuse.KEEP if precedes[row] else Reuse.NONE
        told = Reuse.PRESENT if follows[row] else alone
        arguments.pool[int(arguments.begin[live[row]]) + template.reuse] = told
    begins = np.flatnonzero(~follows[: len(live)])
    return live, np.append(begins, len(live)).astype(np.int64)


def _kept_weights(accesses: Accesses, live: Ints, arguments: _Arguments) -> Ints:
    """Give operations that can follow each other with the same weights equal numbers, others -1."""
    numbers = np.full(len(live), -1, np.int64)
    keys: list[Ints] = []
    found: list[Ints] = []
    widest = max((len(one.kept) for one in accesses.templates), default=0)
    kernels: dict[str, int] = {}
    for number, template in enumerate(accesses.templates):
        if not template.kept or template.spec is None:
            continue
        members = np.flatnonzero(accesses.template[live] == number)
        rows = np.zeros((len(members), widest + 1), np.int64)
        rows[:, 0] = kernels.setdefault(template.spec.key, len(kernels))
        begins = arguments.begin[live[members]]
        rows[:, 1 : len(template.kept) + 1] = arguments.pool[begins[:, None] + template.kept]
        keys.append(rows)
        found.append(members)
    if found:
        numbers[np.concatenate(found)] = equal_rows(np.concatenate(keys))[1]
    return numbers
