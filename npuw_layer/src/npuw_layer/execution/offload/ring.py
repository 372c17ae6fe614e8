"""The slots of device memory that layers' weights take turns in."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from npuw_layer.backends.protocols import (
    Memory,
    OffloadingDevice,
    Span,
    Transfer,
)
from npuw_layer.errors import DeviceError
from npuw_layer.execution.offload.plan import OffloadPlan
from npuw_layer.execution.offload.sources import Layout, Place


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """The weights of all layers of a model: how they lie in a slot, and where they come from."""

    layout: Layout
    sources: Sequence[Sequence[Place]]


@dataclass(slots=True)
class Traffic:
    """What was copied, and what it cost the host."""

    copies: int = 0
    nbytes: int = 0
    wait_seconds: float = 0.0
    """How long programs had to wait for copies."""


@dataclass(slots=True, eq=False)
class _Slot:
    """A piece of device memory, and whose weights are in it or on their way."""

    memory: Memory
    holds: tuple[LayerWeights, int] | None = None
    arriving: Transfer | None = None


class WeightsRing:
    """Brings weights to slots, and says when they are there.

    Who runs a model holds ``turn`` while it does: conversations share the slots.

    Args:
        device: it copies.
        plan: which layer has which slot.
        nbytes: of a slot.
        ahead: whether the next layer's weights are copied while one computes (ASYNC); if not, a
            layer's are copied when it is about to run (SYNC).

    Raises:
        DeviceError: the device has no memory left.
    """

    def __init__(
        self, device: OffloadingDevice, plan: OffloadPlan, nbytes: int, ahead: bool
    ) -> None:
        self._process = os.getpid()
        self._turn = threading.Lock()
        self.traffic = Traffic()
        self._device = device
        self._plan = plan
        self._ahead = ahead
        self._slots = [_Slot(device.allocate(nbytes)) for _ in range(plan.slots)]
        self._recorded: dict[tuple[LayerWeights, int], Transfer] = {}

    def memory(self, layer: int) -> Memory:
        """What a layer's weights are in when it runs."""
        return self._slots[self._plan.slot_of[layer]].memory

    @property
    def turn(self) -> threading.Lock:
        """Held by who runs a model."""
        if self._process != os.getpid():
            # A forked process has none of the threads that held it, or would end copies.
            for slot in self._slots:
                slot.holds = slot.arriving = None
            self._turn = threading.Lock()
            self._process = os.getpid()  # last: what is interrupted before begins anew
        return self._turn

    def begin(self, weights: LayerWeights) -> None:
        """A pass over all layers begins: what is not there yet is asked for, in their order."""
        if self._ahead:
            for layer, slot in enumerate(self._plan.slot_of):
                holds = self._slots[slot].holds
                if holds is None or holds[0] is not weights:
                    self._fetch(weights, layer)

    def acquire(self, weights: LayerWeights, layer: int) -> None:
        """Wait until a layer's weights are in its slot.

        Raises:
            DeviceError: they could not be copied.
        """
        slot = self._slots[self._plan.slot_of[layer]]
        began = time.perf_counter()
        if slot.holds is None or slot.holds[0] is not weights or slot.holds[1] != layer:
            self._fetch(weights, layer)
        if slot.arriving is not None:
            try:
                slot.arriving.wait()
            except BaseException:
                slot.holds = None  # and what was interrupted may still arrive
                raise
            slot.arriving = None
            self.traffic.wait_seconds += time.perf_counter() - began

    def release(self, weights: LayerWeights, layer: int) -> None:
        """A layer has run: its slot is the next one's."""
        following = self._plan.next_in_slot[layer]
        if self._ahead and following != layer:
            self._fetch(weights, following)

    def _fetch(self, weights: LayerWeights, layer: int) -> None:
        """Begin to copy a layer's weights into its slot, over whatever is there."""
        slot = self._slots[self._plan.slot_of[layer]]
        slot.holds = None
        if slot.arriving is not None:
            with suppress(DeviceError):  # what is written over may have failed
                slot.arriving.wait()  # a transfer is not begun again before it has ended
            slot.arriving = None
        transfer = self._transfer(weights, layer)
        transfer.start()
        slot.arriving = transfer
        slot.holds = weights, layer  # last: what is not known to arrive is not there
        self.traffic.copies += 1
        self.traffic.nbytes += sum(place.nbytes for place in weights.sources[layer])

    def _transfer(self, weights: LayerWeights, layer: int) -> Transfer:
        known = self._recorded.get((weights, layer))
        if known is not None:
            return known
        target, layout = self.memory(layer), weights.layout
        spans = [
            Span(target, offset, place.memory, place.offset, place.nbytes)
            for offset, place in zip(layout.offsets, weights.sources[layer], strict=True)
        ]
        made = self._recorded[weights, layer] = self._device.record_copies(spans)
        return made
