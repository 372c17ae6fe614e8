"""A device for models that exceed its memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.arena import nbytes
from npuw_layer.backends.protocols import Device, OffloadingDevice, ability
from npuw_layer.errors import DeviceError, ModelError, NotFolded, OptionError
from npuw_layer.execution.decorator import DeviceDecorator
from npuw_layer.execution.offload.container import read_container, write_container
from npuw_layer.execution.offload.model import LoadedOffload
from npuw_layer.execution.offload.plan import OffloadPlan, plan_offload
from npuw_layer.execution.offload.report import OffloadReport
from npuw_layer.execution.offload.ring import LayerWeights, Traffic, WeightsRing
from npuw_layer.execution.offload.sources import HostWeights, ResidentWeights
from npuw_layer.execution.offload.stage import OffloadedModel, load_stage
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.model import Model


class OffloadDevice(DeviceDecorator):
    """A device that runs offloaded models on an inner device.

    The static models of one LLM share its slots, and conversations take turns.

    Args:
        device: inner device, which compiles, computes and copies.
        folder: folder of the model's files.
        options: NPUW_WEIGHTS_OFFLOAD, NPUW_WEIGHTS_BUDGET and NPUW_WEIGHTS_RESERVED are used.
    """

    def __init__(self, device: OffloadingDevice, folder: Path, options: Options) -> None:
        super().__init__(device)
        self._copying = device
        self._options = options
        self._host = HostWeights(device, folder)
        self._resident = ResidentWeights(device, self._host)
        self._stages: list[OffloadedModel] = []
        self._weights: dict[object, LayerWeights] = {}
        self._ring: WeightsRing | None = None
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """Version of the inner device, marked, because parts differ from uncut models."""
        return f"{self._device.version} in parts"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Cut and compile a graph.

        Raises:
            ModelError: the graph repeats no block, or is not supported.
        """
        try:
            return write_container(self._copying.compile_parts(model, config))
        except NotFolded as error:
            option = f"NPUW_WEIGHTS_OFFLOAD = {self._options.weights_offload}"
            raise ModelError(f"{option}: {error}; set it to NO") from error

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield the model with its first two and its last layer, to be cut; then all layers."""
        from compiler_layer.partition.repeated.fold import folded

        smaller = folded(model, both_first=True)
        if smaller is not None:
            yield smaller
        yield model

    def load(self, program: bytes | memoryview) -> LoadedOffload:
        """Load the parts of a model.

        Raises:
            DeviceError: the bytes are not an offloaded model for this device; or a conversation has
                begun, so that the slots' sizes are fixed.
            ModelError: the model's files lack a weight.
            OptionError: the budget is too small for the model.
        """
        parts = read_container(program)
        stage = load_stage(self._copying, parts, self._host, self._weights)
        with self._lock:
            if self._ring is not None:
                raise DeviceError("load all static models before the first conversation")
            self._stages.append(stage)
            self._plan()
        return LoadedOffload(self._device, stage, self._resident, self._slots)

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Return none: weights are in the model's files; see ``protocols.FindsConstants``."""
        return ()

    def offload_report(self) -> OffloadReport:
        """Report the memory of weights, the copies so far, and predicted times.

        Raises:
            OptionError: as ``load``.
        """
        with self._lock:
            plan, ring, stages = self._plan(), self._ring, [*self._stages]
        layer, resident = self._layer_bytes, self._resident_bytes
        traffic = ring.traffic if ring is not None else Traffic()
        return OffloadReport(
            mode=self._options.weights_offload,
            layers=len(plan.slot_of),
            moving=len(plan.moving),
            slots=plan.slots,
            layer_bytes=layer,
            weight_bytes=resident + len(plan.slot_of) * layer,
            device_bytes=resident + plan.slots * layer,
            copies=traffic.copies,
            copied_bytes=traffic.nbytes,
            wait_seconds=traffic.wait_seconds,
            stages=tuple(stage.times(plan) for stage in stages),
        )

    @property
    def _layer_bytes(self) -> int:
        return max(stage.weights.layout.nbytes for stage in self._stages)

    @property
    def _resident_bytes(self) -> int:
        sizes = {info.name: nbytes(info) for stage in self._stages for info in stage.resident}
        return sum(sizes.values())

    def _plan(self) -> OffloadPlan:
        """Distribute the budget over all loaded static models."""
        options, layers = self._options, max(stage.layers for stage in self._stages)
        return plan_offload(
            layers,
            self._layer_bytes,
            self._resident_bytes,
            options.weights_budget,
            options.weights_reserved,
        )

    def _slots(self) -> WeightsRing:
        """Return the slots, which the first conversation creates."""
        with self._lock:
            if self._ring is None:
                ahead = self._options.weights_offload == "ASYNC"
                self._ring = WeightsRing(self._copying, self._plan(), self._layer_bytes, ahead)
            return self._ring


def offloading(device: Device, folder: Path, options: Options) -> OffloadDevice:
    """Return a device that runs models whose weights stay on the host.

    Args:
        device: inner device, which computes and copies.
        folder: folder of the model's files.
        options: the requested options.

    Raises:
        OptionError: the device cannot copy during computation, or other options contradict offload.
    """
    asked = f"NPUW_WEIGHTS_OFFLOAD = {options.weights_offload}"
    if any(own.acc_check for own in options.of_stages):
        raise OptionError(f"{asked} runs on the NPU only; leave NPUW_ACC_CHECK at NO")
    copying = ability(device, OffloadingDevice)
    if copying is None:
        names = dict.fromkeys(own.devices for own in options.of_stages)
        raise OptionError(
            f"{asked}: NPUW_DEVICES = {' and '.join(names)} cannot copy during computation; use "
            "NPU for all stages"
        )
    if not options.weightless:
        raise OptionError(
            f"{asked} needs blobs without weights; leave CACHE_MODE at OPTIMIZE_SIZE and "
            "ENABLE_WEIGHTLESS at YES"
        )
    if options.shares_weights:
        raise OptionError(
            f"{asked} keeps weights in host memory, where processes already share the mapped file; "
            "leave NPUW_WEIGHTS_BANK and NPUW_WEIGHTS_BANK_ALLOC empty"
        )
    return OffloadDevice(copying, folder, options)
