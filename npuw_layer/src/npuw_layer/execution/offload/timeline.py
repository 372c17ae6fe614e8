"""Predicted times of layers and copies on the simulated device.

How it works. A pass is prologue, layers, epilogue, one after the other; copies go through one
engine, in their order. A layer begins when its weights are in its slot; when it ends, the copy of
the next layer in the slot may begin. Computation and copies share the bandwidth of device memory,
as transfers within a program do (``driver_layer.npu.timeline``). Passes follow each other without a
gap, and the measured one is in the middle: a stall is

    max(0, time of a copy - time of the layers since it could begin)

which is zero if copies are shorter than layers. The model leaves out the host's work between
programs, and the queueing of a program that runs during a copy.

Source: the law of the stall is that of MindIE-SD's offload, docs/reference/npu.md#weight-offload.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from driver_layer.npu.timeline.simulate import fair_rates
from npuw_layer.backends.protocols import Cost
from npuw_layer.execution.offload.plan import OffloadPlan

_PASSES = 4
"""Number of passes, of which the last is measured. The first begins without any weights, like a
model that was just loaded: slow copies then never get ahead of the layers. With full slots at the
beginning, many passes would profit from these weights."""


@dataclass(frozen=True, slots=True)
class PartCosts:
    """Costs of each part, and of copying a layer's weights, without overlap."""

    prologue: Cost
    layer: Cost
    epilogue: Cost
    copy: Cost


@dataclass(frozen=True, slots=True)
class PassTime:
    """Time of a pass, including ``stall_ns`` of waiting for weights."""

    ns: float
    stall_ns: float


def resident_pass(costs: PartCosts, layers: int) -> PassTime:
    """Return the time of a pass with all weights in device memory."""
    return PassTime(costs.prologue.ns + layers * costs.layer.ns + costs.epilogue.ns, 0.0)


def synchronous_pass(costs: PartCosts, plan: OffloadPlan) -> PassTime:
    """Return the time of a pass that waits for each copy."""
    stall = len(plan.moving) * costs.copy.ns
    return PassTime(resident_pass(costs, len(plan.slot_of)).ns + stall, stall)


def asynchronous_pass(costs: PartCosts, plan: OffloadPlan, ddr_bytes_per_ns: float) -> PassTime:
    """Return the time of a pass that overlaps with copies of later layers' weights.

    Args:
        costs: costs of parts and copies.
        plan: the moving layers, and their slots.
        ddr_bytes_per_ns: memory bandwidth that layers and copies share.
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
    """A compute engine and a copy engine, which share the memory's bandwidth."""

    def __init__(self, copy: Cost, plan: OffloadPlan, ddr_bytes_per_ns: float) -> None:
        self.now = 0.0
        self.stalled = 0.0
        self._copy = copy
        self._plan = plan
        self._ddr = ddr_bytes_per_ns
        self._queue = deque(sorted(map(plan.slot_of.index, range(plan.slots))))
        """Layers whose weights are being copied (the first one) or queued."""
        self._left = copy.ns
        """Remaining time of the first one's copy, ns at full speed."""

    def run(self, work: Cost) -> None:
        """Compute a part, while copies continue."""
        left = work.ns
        while left > 0:
            left -= self._step(work, left)

    def await_weights(self, layer: int) -> None:
        """Continue copies until a layer's weights are present."""
        began = self.now
        while layer in self._queue:
            self._step(None, math.inf)
        self.stalled += self.now - began

    def free_slot(self, layer: int) -> None:
        """Queue the copy for the next layer in the slot of a finished layer."""
        following = self._plan.next_in_slot[layer]
        if following != layer:
            if not self._queue:
                self._left = self._copy.ns
            self._queue.append(following)

    def _step(self, work: Cost | None, left: float) -> float:
        """Advance to the next event; return the computed ns at full speed."""
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
