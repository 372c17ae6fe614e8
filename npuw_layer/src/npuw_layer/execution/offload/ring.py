"""Slots of device memory that layers' weights share in turn."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from npuw_layer.backends.protocols import (
    CopyProgram,
    Memory,
    OffloadingDevice,
    WeightCopy,
)
from npuw_layer.errors import DeviceError
from npuw_layer.execution.offload.plan import OffloadPlan
from npuw_layer.execution.offload.sources import HostBytes, SlotLayout


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """Weights of all layers of a model: layout in a slot, and sources on the host."""

    layout: SlotLayout
    sources: Sequence[Sequence[HostBytes]]


@dataclass(slots=True)
class Traffic:
    """Copies so far, and their cost for the host."""

    copies: int = 0
    nbytes: int = 0
    wait_seconds: float = 0.0
    """Time that programs waited for copies."""


@dataclass(slots=True, eq=False)
class _Slot:
    """A slot of device memory, and the weights that are in it or being copied."""

    memory: Memory
    holds: tuple[LayerWeights, int] | None = None
    arriving: CopyProgram | None = None


class WeightsRing:
    """Copies of weights to slots, and waits for their arrival.

    A thread holds ``turn`` while it runs a model: conversations share the slots.

    Args:
        device: the device that copies.
        plan: the slot of each layer.
        nbytes: size of a slot.
        ahead: whether to copy the next layer's weights while one computes (ASYNC); otherwise a
            layer's weights are copied when it is about to run (SYNC).

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
        self._recorded: dict[tuple[LayerWeights, int], CopyProgram] = {}

    def memory(self, layer: int) -> Memory:
        """Return the slot that holds a layer's weights when it runs."""
        return self._slots[self._plan.slot_of[layer]].memory

    @property
    def turn(self) -> threading.Lock:
        """Lock to hold during a model's run."""
        if self._process != os.getpid():
            # A forked process has no thread that could release the lock or complete copies.
            for slot in self._slots:
                slot.holds = slot.arriving = None
            self._turn = threading.Lock()
            self._process = os.getpid()  # last: after an interruption, the reset runs again
        return self._turn

    def begin(self, weights: LayerWeights) -> None:
        """Begin a pass over all layers: copy missing weights, in the layers' order."""
        if self._ahead:
            for layer, slot in enumerate(self._plan.slot_of):
                holds = self._slots[slot].holds
                if holds is None or holds[0] is not weights:
                    self._fetch(weights, layer)

    def acquire(self, weights: LayerWeights, layer: int) -> None:
        """Wait until a layer's weights are in its slot.

        Raises:
            DeviceError: the weights could not be copied.
        """
        slot = self._slots[self._plan.slot_of[layer]]
        began = time.perf_counter()
        if slot.holds is None or slot.holds[0] is not weights or slot.holds[1] != layer:
            self._fetch(weights, layer)
        if slot.arriving is not None:
            try:
                slot.arriving.wait()
            except BaseException:
                slot.holds = None  # an interrupted copy may still arrive
                raise
            slot.arriving = None
            self.traffic.wait_seconds += time.perf_counter() - began

    def release(self, weights: LayerWeights, layer: int) -> None:
        """End a layer's run: with ASYNC, request the weights of the next layer in its slot."""
        following = self._plan.next_in_slot[layer]
        if self._ahead and following != layer:
            self._fetch(weights, following)

    def _fetch(self, weights: LayerWeights, layer: int) -> None:
        """Begin to copy a layer's weights into its slot, over the current ones."""
        slot = self._slots[self._plan.slot_of[layer]]
        slot.holds = None
        if slot.arriving is not None:
            with suppress(DeviceError):  # an overwritten copy may have failed
                slot.arriving.wait()  # a transfer must end before it starts again
            slot.arriving = None
        transfer = self._transfer(weights, layer)
        transfer.start()
        slot.arriving = transfer
        slot.holds = weights, layer  # last: if the start fails, the slot holds nothing
        self.traffic.copies += 1
        self.traffic.nbytes += sum(place.nbytes for place in weights.sources[layer])

    def _transfer(self, weights: LayerWeights, layer: int) -> CopyProgram:
        known = self._recorded.get((weights, layer))
        if known is not None:
            return known
        target, layout = self.memory(layer), weights.layout
        spans = [
            WeightCopy(target, offset, place.memory, place.offset, place.nbytes)
            for offset, place in zip(layout.offsets, weights.sources[layer], strict=True)
        ]
        made = self._recorded[weights, layer] = self._device.record_copies(spans)
        return made
