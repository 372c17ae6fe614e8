"""Kernel calls: operations with their final operands, before scheduling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.copy_propagation import CopyPropagation
from driver_layer.engines.native.lower.redirect import find_redirections
from driver_layer.engines.native.lower.template import NO_WORD, Template


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Kernel calls, in any order.

    Attributes:
        templates: templates by number.
        template: number of each call's template, [calls].
        level: level of each call; calls of one level are independent.
        operation: operation that the call executes, or one of several.
        cost: relative run time.
        begin: position of the call's first argument in the pool.
        pool: arguments of all calls.
    """

    templates: Sequence[Template]
    template: Ints
    level: Ints
    operation: Ints
    cost: Ints
    begin: Ints
    pool: Ints

    def __len__(self) -> int:
        return len(self.template)

    def take(self, chosen: Ints | Flags) -> Calls:
        """Select some calls."""
        return replace(
            self,
            template=self.template[chosen],
            level=self.level[chosen],
            operation=self.operation[chosen],
            cost=self.cost[chosen],
            begin=self.begin[chosen],
        )

    def words(self, chosen: Ints, count: int) -> Ints:
        """Return the arguments of some calls, [chosen, count]."""
        return self.pool[self.begin[chosen, None] + np.arange(count)]

    def streams(self) -> tuple[Ints, Ints]:
        """Return address and bytes of the operand that each call streams; 0 without a stream."""
        address, size = np.zeros((2, len(self)), np.int64)
        for number, template in enumerate(self.templates):
            if template.stream is None or template.spec is None:
                continue
            members = np.flatnonzero(self.template == number)
            first, length, stride = (self.pool[self.begin[members] + at] for at in template.stream)
            address[members], size[members] = first, length * stride
        return address, size

    def grouped(self, key: Callable[[Template], str | None]) -> list[tuple[Template, Ints]]:
        """Group calls by a key of their templates, without those of None or without a kernel.

        Returns a template and the calls of each group.
        """
        groups: dict[str, list[int]] = {}
        for number, template in enumerate(self.templates):
            name = key(template) if template.spec is not None else None
            if name is not None:
                groups.setdefault(name, []).append(number)
        found = [
            (self.templates[numbers[0]], np.flatnonzero(np.isin(self.template, numbers)))
            for numbers in groups.values()
        ]
        return [(template, members) for template, members in found if len(members)]

    def mergeable(self) -> list[tuple[Template, Ints]]:
        """Return the calls of each kernel that has parallel dimensions."""
        return self.grouped(lambda one: one.spec.key if one.spec and one.parallel_dims else None)

    def replaced(self, gone: Sequence[Ints], made: Sequence[MadeCalls]) -> Calls:
        """Replace some calls by copies of calls with other arguments and costs."""
        left = np.ones(len(self), np.bool_)
        for members in gone:
            left[members] = False
        begin, pool, end = [self.begin[left]], [self.pool], len(self.pool)
        for _, words, _ in made:
            begin.append(end + words.shape[1] * np.arange(len(words)))
            pool.append(words.reshape(-1))
            end += words.size
        like = [np.flatnonzero(left), *(like for like, _, _ in made)]
        cost = [self.cost[left], *(cost for _, _, cost in made)]
        return replace(
            self.take(np.concatenate(like)),
            cost=np.concatenate(cost),
            begin=np.concatenate(begin),
            pool=np.concatenate(pool),
        )


MadeCalls = tuple[Ints, Ints, Ints]
"""Calls to copy, and the arguments and costs of the copies."""


def make_calls(accesses: Accesses, propagation: CopyPropagation, in_python: Flags) -> Calls:
    """Return a call for each executed operation, all on level 0.

    Args:
        accesses: all operations.
        propagation: redirected operands and eliminated copies.
        in_python: operations that the reference engine runs; their calls have no arguments.
    """
    templates, without = accesses.templates, in_python | propagation.eliminated
    counts = np.array([len(one.words) for one in templates], np.int64)[accesses.template]
    counts[without] = 0
    begin: Ints = np.concatenate([[0], np.cumsum(counts)])
    pool = np.zeros(int(begin[-1]), np.int64)
    for number, template in enumerate(templates):
        if template.spec is None:
            continue
        members = np.flatnonzero((accesses.template == number) & ~without)
        block = np.tile(np.array(template.words, np.int64), (len(members), 1))
        for index, slot in enumerate(template.slots):
            if slot.word != NO_WORD:
                block[:, slot.word] = accesses.hosts[accesses.first[members] + index]
        pool[begin[members, None] + np.arange(len(template.words))] = block
    owners = accesses.owners
    for redirection in find_redirections(accesses, propagation.copies):
        assert redirection.remapped is not None  # others were dropped by copy propagation
        there = ~without[owners[redirection.accesses]]
        places = begin[owners[redirection.accesses[there]]]
        pool[places + redirection.operand.word] = (
            accesses.hosts[redirection.far[there]] + redirection.remapped.offset
        )
        for word, stride in redirection.remapped.strides:
            pool[places + word] = stride
    cost = np.array([one.cost for one in templates], np.int64)[accesses.template]
    everything = np.arange(len(accesses))
    levels = np.zeros(len(accesses), np.int64)
    # Calls of the reference engine have a separate template, so that nothing merges them.
    numbers = np.where(in_python, len(templates), accesses.template)
    templates = [*templates, Template(None, (), ())]
    calls = Calls(templates, numbers, levels, everything, cost, begin[:-1], pool)
    return calls.take(~propagation.eliminated)
