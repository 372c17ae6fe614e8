"""When layers and copies would run on the simulated device.

How it works. A pass is prologue, layers, epilogue, one after the other; copies go through one
engine, in their order. A layer begins when its weights are in its slot; the copy of the layer that
has the slot next may begin when it ends. Both use the device's memory: together they get what it
moves, as transfers within a program do (``driver_layer.npu.timeline``). Passes follow each other
without a gap, and what is measured is one in the middle: a stall is

    max(0, time of a copy - time of the layers since it could begin)

of which nothing is left where copies are shorter than layers. What the host does between programs,
and the queues of a program beside which a copy runs, are not in it.

Source: the law of the stall is that of MindIE-SD's offload, fact sheet simulators_npu §d.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from driver_layer.npu.timeline.simulate import fair_rates
from npuw_layer.backends.protocols import Cost
from npuw_layer.execution.offload.plan import OffloadPlan

_PASSES = 4
"""The last of so many is measured: the first one begins without any weights, as a model does that
was just loaded. Copies that are slower than layers then never get ahead of them; if all slots were
full, many passes would live on that."""


@dataclass(frozen=True, slots=True)
class PieceCosts:
    """What the pieces and the copy of a layer's weights cost alone."""

    prologue: Cost
    layer: Cost
    epilogue: Cost
    copy: Cost


@dataclass(frozen=True, slots=True)
class PassTime:
    """How long a pass takes; ``stall_ns`` of that the device waits for weights."""

    ns: float
    stall_ns: float


def resident_pass(costs: PieceCosts, layers: int) -> PassTime:
    """A pass if all weights were in device memory."""
    return PassTime(costs.prologue.ns + layers * costs.layer.ns + costs.epilogue.ns, 0.0)


def synchronous_pass(costs: PieceCosts, plan: OffloadPlan) -> PassTime:
    """A pass that waits for each copy."""
    stall = len(plan.moving) * costs.copy.ns
    return PassTime(resident_pass(costs, len(plan.slot_of)).ns + stall, stall)


def asynchronous_pass(costs: PieceCosts, plan: OffloadPlan, ddr_bytes_per_ns: float) -> PassTime:
    """A pass beside which the weights of later layers are copied.

    Args:
        costs: of pieces and copies.
        plan: which layers' weights move, and where to.
        ddr_bytes_per_ns: what layers and copies share.
    """
    engines = _Engines(costs.copy, plan, ddr_bytes_per_ns)
    begins, stalls = [0.0], [0.0]
    for _ in range(_PASSES):
        engines.run(costs.prologue)
        for layer in range(len(plan.slot_of)):
            engines.await_weights(layer)
            engines.run(costs.layer)
            engines.free_slot(layer)
        engines.run(costs.epilogue)
        begins.append(engines.now)
        stalls.append(engines.stalled)
    return PassTime(begins[-1] - begins[-2], stalls[-1] - stalls[-2])


class _Engines:
    """One engine that computes and one that copies, and the memory that they share."""

    def __init__(self, copy: Cost, plan: OffloadPlan, ddr_bytes_per_ns: float) -> None:
        self.now = 0.0
        self.stalled = 0.0
        self._copy = copy
        self._plan = plan
        self._ddr = ddr_bytes_per_ns
        self._queue = deque(sorted(map(plan.slot_of.index, range(plan.slots))))
        """Layers whose weights are being copied, or are to be; the first one is."""
        self._left = copy.ns
        """Of the first one's copy, ns at full speed."""

    def run(self, work: Cost) -> None:
        """Compute something, while copies go on."""
        left = work.ns
        while left > 0:
            left -= self._step(work, left)

    def await_weights(self, layer: int) -> None:
        """Let copies go on until a layer's weights are there."""
        began = self.now
        while layer in self._queue:
            self._step(None, math.inf)
        self.stalled += self.now - began

    def free_slot(self, layer: int) -> None:
        """A layer has run: the next one's weights may come."""
        following = self._plan.next_in_slot[layer]
        if following != layer:
            if not self._queue:
                self._left = self._copy.ns
            self._queue.append(following)

    def _step(self, work: Cost | None, left: float) -> float:
        """Go on to the next event; give the ns of full speed that were computed."""
        running = [each for each in (work, self._copy if self._queue else None) if each is not None]
        demands = [max(each.ddr_bytes / (each.ns * self._ddr), 1e-12) for each in running]
        rates = fair_rates(demands)
        computing = rates[0] if work is not None else 0.0
        copying = rates[-1] if self._queue else 0.0
        ends = left / computing if computing else math.inf
        arrives = self._left / copying if copying else math.inf
        span = min(ends, arrives)
        self.now += span
        if self._queue:
            self._left -= span * copying
            if arrives <= ends:
                self._queue.popleft()
                self._left = self._copy.ns
        return left if ends <= arrives else span * computing
