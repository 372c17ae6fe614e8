"""Barriers, the only means by which tasks of different queues order each other.

A virtual barrier counts producers and consumers. Its waiters may start when all producers are done;
when all consumers are done, too, the physical barrier is programmed with the next virtual barrier
of the same number. Thus the number of virtual barriers is unlimited, that of physical ones small.

Source: docs/reference/elf.md#barriers-and-queues.
"""

from __future__ import annotations

from driver_layer.abi.layout import RecordArray
from driver_layer.errors import DeviceFault


def mask_bits(mask: int) -> list[int]:
    """Return the numbers of the barriers in a mask."""
    bits: list[int] = []
    while mask:
        low = mask & -mask
        bits.append(low.bit_length() - 1)
        mask ^= low
    return bits


class BarrierFile:
    """State of the physical barriers during one inference.

    Args:
        configs: BARRIER_CONFIG records of the virtual barriers.
        physical: number of the device's physical barriers.

    Raises:
        DeviceFault: a chain of virtual barriers is malformed.
    """

    def __init__(self, configs: RecordArray, physical: int) -> None:
        self._next: list[int] = configs["next_same_id"].tolist()
        self._producers: list[int] = configs["producers"].tolist()
        self._consumers: list[int] = configs["consumers"].tolist()
        self._real: list[int] = configs["real_id"].tolist()
        self._current: dict[int, int] = {}
        self._programmed = [False] * len(self._real)
        self.programmed_below = 0
        """First virtual barrier that has not been programmed."""
        self._check_chains(physical)
        for virtual, real in enumerate(self._real):
            if real not in self._current:
                self._program(real, virtual)

    def open(self, wait: int) -> bool:
        """Return whether all producers of a wait mask's barriers are done."""
        producers, current = self._producers, self._current
        return all(real in current and producers[current[real]] == 0 for real in mask_bits(wait))

    def finish(self, wait: int, post: int, slots: int) -> None:
        """Count the end of a task that waited for one mask and signals another.

        Raises:
            DeviceFault: a counter would fall below zero.
        """
        for real in mask_bits(post):
            self._count_down(self._producers, real, slots)
        for real in mask_bits(wait):
            self._count_down(self._consumers, real, slots)
        for real in mask_bits(wait | post):
            self._reprogram_if_consumed(real)

    def unfinished(self) -> list[int]:
        """Return the virtual barriers with producers that are not done."""
        return [virtual for virtual, left in enumerate(self._producers) if left]

    def describe(self, wait: int) -> str:
        """Return a text that lists the closed barriers of a mask, for debugging schedules."""
        closed = [
            f"{self._current.get(real)} (physical {real})"
            for real in mask_bits(wait)
            if not self.open(1 << real)
        ]
        return ", ".join(closed) or "none"

    def _check_chains(self, physical: int) -> None:
        for virtual, (following, real) in enumerate(zip(self._next, self._real, strict=True)):
            if real >= physical:
                raise DeviceFault(f"barrier {virtual} uses physical barrier {real} of {physical}")
            if following == -1:
                continue
            if not virtual < following < len(self._real) or self._real[following] != real:
                raise DeviceFault(f"barrier {virtual} cannot be followed by {following}")

    def _count_down(self, counters: list[int], real: int, slots: int) -> None:
        virtual = self._current.get(real)
        if virtual is None:
            raise DeviceFault(f"physical barrier {real} is not programmed")
        counters[virtual] -= slots
        if counters[virtual] < 0:
            raise DeviceFault(f"barrier {virtual} is used more often than it was configured for")

    def _reprogram_if_consumed(self, real: int) -> None:
        virtual = self._current[real]
        following = self._next[virtual]
        if following != -1 and not self._producers[virtual] and not self._consumers[virtual]:
            self._program(real, following)

    def _program(self, real: int, virtual: int) -> None:
        self._current[real] = virtual
        self._programmed[virtual] = True
        while self.programmed_below < len(self._programmed):
            if not self._programmed[self.programmed_below]:
                break
            self.programmed_below += 1
