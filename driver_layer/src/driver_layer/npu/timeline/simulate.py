"""Discrete-event simulation of queues, barriers and DDR.

Time advances from event to event: a task ends, or its latency ends and it begins to move bytes.
Each queue runs one task at a time, in order; its head begins when the engine is free and the
barriers allow. Concurrent transfers share the DDR bandwidth: each gets its demand, and if the sum
is too large, the largest demands are reduced first. Nothing else is shared; in particular, the two
channels of a DMA port do not slow each other down (assumed).

Because transfers share bandwidth, a faster engine can make a program slower: an earlier transfer
can take bandwidth from one that is critical. Without contention, this cannot happen.

Source: docs/reference/elf.md#barriers-and-queues; the order of issue is that of ``npu.order``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driver_layer.abi.cost.dma import ddr_bytes_per_ns
from driver_layer.abi.platforms import Platform
from driver_layer.npu.barriers import BarrierFile
from driver_layer.npu.order import check_complete, finish, is_ready
from driver_layer.npu.program import Program
from driver_layer.npu.timeline.price import Engine, Price


@dataclass(frozen=True, slots=True)
class TaskTime:
    """Begin, end and work of a task."""

    queue: str
    """Name of the task's queue, e.g. "DPU tile 0"."""
    index: int
    """Index in the queue's list."""
    engine: Engine
    tile: int | None
    """See ``Price``, also for bytes and multiply-accumulates."""
    nbytes: int
    ddr_bytes: int
    macs: int
    alone_ns: float
    """Duration without contention; end - begin is never less."""
    begin_ns: float
    """Time since the start of the inference."""
    end_ns: float


@dataclass(slots=True)
class _Running:
    """A running task: at ``since``, ``left`` ns of work at full rate remained."""

    price: Price
    begin: float
    since: float
    left: float
    rate: float = 1.0

    @property
    def end(self) -> float:
        """End of the task if its rate does not change."""
        return self.since + self.left / self.rate

    def go_on(self, now: float, rate: float) -> None:
        """Continue at another rate."""
        if rate != self.rate:
            self.left = max(0.0, self.left - (now - self.since) * self.rate)
            self.since, self.rate = now, rate


def simulate(
    program: Program, prices: Sequence[Sequence[Price]], platform: Platform
) -> list[TaskTime]:
    """Simulate begin and end of each task of a program.

    Args:
        program: queues and barriers.
        prices: prices of each queue's tasks.
        platform: the device; its number of barriers and its DDR bandwidth matter.

    Returns:
        The tasks, queue by queue, each in order.

    Raises:
        DeviceFault: a deadlock, or a barrier that is misused or never completed.
    """
    timeline = _Timeline(program, prices, platform)
    while timeline.issue():
        timeline.advance()
    return timeline.times()


def fair_rates(demands: Sequence[float]) -> list[float]:
    """Share one unit of bandwidth: small demands are met, the others get equal parts of the rest.

    Args:
        demands: positive demands without contention.

    Returns:
        The granted fraction of each demand, at most 1.
    """
    rates = [1.0] * len(demands)
    rest = 1.0
    ascending = sorted(range(len(demands)), key=lambda one: demands[one])
    for taken, one in enumerate(ascending):
        granted = min(demands[one], rest / (len(demands) - taken))
        rates[one] = granted / demands[one]
        rest -= granted
    return rates


class _Timeline:
    """State of the simulation."""

    def __init__(
        self, program: Program, prices: Sequence[Sequence[Price]], platform: Platform
    ) -> None:
        self._program, self._queues = program, program.queues
        self._prices = prices
        physical = platform.barriers_per_tile * platform.tiles
        self._barriers = BarrierFile(program.barriers, physical)
        self._ddr = ddr_bytes_per_ns(platform)
        self._now = 0.0
        self._running: list[_Running | None] = [None] * len(program.queues)
        self._done: list[list[TaskTime]] = [[] for _ in program.queues]

    def issue(self) -> bool:
        """Begin all tasks that may begin; return whether any task is running."""
        for number, running in enumerate(self._running):
            if running is None and self._ready(number):
                price = self._head(number)
                since = self._now + price.latency_ns
                self._running[number] = _Running(price, self._now, since, price.busy_ns)
        self._share_ddr()
        return any(running is not None for running in self._running)

    def advance(self) -> None:
        """Advance to the next event, and end the tasks that end then."""
        under_way = [running for running in self._running if running is not None]
        ends = [running.end for running in under_way]
        waits = [one.since for one in under_way if one.price.ddr_bytes and one.since > self._now]
        self._now = max(self._now, min(ends + waits))
        for number, running in enumerate(self._running):
            if running is not None and running.end <= self._now:
                self._finish(number, running)

    def times(self) -> list[TaskTime]:
        """Return the times of all tasks, queue by queue, at the end of the inference."""
        check_complete(self._program, [len(done) for done in self._done], self._barriers)
        return [time for queue in self._done for time in queue]

    def _ready(self, number: int) -> bool:
        queue, index = self._queues[number], len(self._done[number])
        return index < len(queue) and is_ready(queue, index, self._barriers)

    def _head(self, number: int) -> Price:
        return self._prices[number][len(self._done[number])]

    def _share_ddr(self) -> None:
        """Set the rates of the transfers that currently use DDR bandwidth."""
        sharing = [
            running
            for running in self._running
            if running is not None and running.price.ddr_bytes and running.since <= self._now
        ]
        demands = [one.price.ddr_bytes / (one.price.busy_ns * self._ddr) for one in sharing]
        for running, rate in zip(sharing, fair_rates(demands), strict=True):
            running.go_on(self._now, rate)

    def _finish(self, number: int, running: _Running) -> None:
        queue, index = self._queues[number], len(self._done[number])
        finish(queue, index, self._barriers)
        self._running[number] = None
        self._done[number].append(_time(queue.name, index, running, self._now))


def _time(queue: str, index: int, running: _Running, end: float) -> TaskTime:
    price = running.price
    return TaskTime(
        queue=queue,
        index=index,
        engine=price.engine,
        tile=price.tile,
        nbytes=price.nbytes,
        ddr_bytes=price.ddr_bytes,
        macs=price.macs,
        alone_ns=price.alone_ns,
        begin_ns=running.begin,
        end_ns=end,
    )
