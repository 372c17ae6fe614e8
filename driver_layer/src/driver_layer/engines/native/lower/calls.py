"""Calls of kernels: what is left of operations when all is decided but who runs them when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.forward import Forwarding
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.moves import find_ways
from driver_layer.engines.native.lower.template import NO_WORD, Template


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls, in any order.

    Attributes:
        templates: kernels, by number.
        template: the number of each call's, [calls].
        level: what may run side by side.
        operation: the one that it does, or the first of several.
        cost: what it takes, compared with others.
        begin: where its arguments begin in the pool.
        pool: the arguments of all calls.
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
        """Some of them."""
        return replace(
            self,
            template=self.template[chosen],
            level=self.level[chosen],
            operation=self.operation[chosen],
            cost=self.cost[chosen],
            begin=self.begin[chosen],
        )

    def at(self, levels: Ints) -> Calls:
        """The same on other levels, given by operation."""
        return replace(self, level=levels[self.operation])

    def words(self, chosen: Ints, count: int) -> Ints:
        """The arguments of some of them, [chosen, count]."""
        return self.pool[self.begin[chosen, None] + np.arange(count)]

    def streams(self) -> tuple[Ints, Ints]:
        """Where what each call streams begins, and its bytes; 0 of what streams nothing."""
        address, size = np.zeros((2, len(self)), np.int64)
        for number, template in enumerate(self.templates):
            if template.stream is None or template.spec is None:
                continue
            members = np.flatnonzero(self.template == number)
            first, length, stride = (self.pool[self.begin[members] + at] for at in template.stream)
            address[members], size[members] = first, length * stride
        return address, size

    def append(self, like: Ints, words: Ints, cost: Ints) -> Calls:
        """Add calls that are like some of these but for their arguments and cost."""
        more = self.take(like)
        begins = len(self.pool) + words.shape[1] * np.arange(len(words))
        return Calls(
            self.templates,
            np.concatenate([self.template, more.template]),
            np.concatenate([self.level, more.level]),
            np.concatenate([self.operation, more.operation]),
            np.concatenate([self.cost, cost]),
            np.concatenate([self.begin, begins]),
            np.concatenate([self.pool, words.reshape(-1)]),
        )


def make_calls(accesses: Accesses, forwarding: Forwarding, in_python: Flags) -> Calls:
    """Make a call of each operation that is executed, all on level 0.

    Args:
        accesses: all operations.
        forwarding: what goes through copies.
        in_python: what the reference engine runs has no arguments, nor has what is left out.
    """
    templates, without = accesses.templates, in_python | forwarding.dropped
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
    for way in find_ways(accesses, forwarding.copies):
        assert way.moved is not None  # or it would not go there
        there = ~without[owners[way.accesses]]
        places = begin[owners[way.accesses[there]]]
        pool[places + way.operand.word] = accesses.hosts[way.far[there]] + way.moved.offset
        for word, stride in way.moved.strides:
            pool[places + word] = stride
    cost = np.array([one.cost for one in templates], np.int64)[accesses.template]
    everything = np.arange(len(accesses))
    levels = np.zeros(len(accesses), np.int64)
    # What the reference engine runs has no arguments, and is nothing that can be merged.
    numbers = np.where(in_python, len(templates), accesses.template)
    templates = [*templates, Template(None, (), ())]
    calls = Calls(templates, numbers, levels, everything, cost, begin[:-1], pool)
    return calls.take(~forwarding.dropped)
