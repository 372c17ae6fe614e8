"""The parts of an offloaded model as one loaded model, and its programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from compiler_layer.partition.compiled import HIDDEN_IN, HIDDEN_OUT, LITERAL_PREFIX, SHARED
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import nbytes, padded
from npuw_layer.backends.protocols import Device, LoadedModel, Memory, TensorInfo
from npuw_layer.execution.joined_program import JoinedProgram
from npuw_layer.execution.offload.ring import WeightsRing
from npuw_layer.execution.offload.sources import ResidentWeights
from npuw_layer.execution.offload.stage import OffloadedModel

_INSIDE = (HIDDEN_IN, HIDDEN_OUT, SHARED, WEIGHT_PREFIX, LITERAL_PREFIX)
"""Prefixes of the ports that only this module binds."""


class LoadedOffload:
    """Prologue, block and epilogue on a device; satisfies ``protocols.LoadedModel``.

    Args:
        device: the parts' device.
        stage: the parts.
        resident: weights outside the layers.
        ring: returns the slots of the layers' weights.
    """

    def __init__(
        self,
        device: Device,
        stage: OffloadedModel,
        resident: ResidentWeights,
        ring: Callable[[], WeightsRing],
    ) -> None:
        self.device = device
        self.weights = stage.weights
        self.resident = resident
        self._ring = ring
        layers = [(stage.block, stage.in_model(layer)) for layer in range(stage.layers)]
        none: Mapping[str, str] = {}
        self.calls = [(stage.prologue, none), *layers, (stage.epilogue, none)]
        """The parts in execution order, each with the model's names of its variables."""
        self.inputs: Sequence[TensorInfo] = self._outside(lambda part: part.inputs)
        """Inputs of the model itself, each once."""
        self.outputs: Sequence[TensorInfo] = self._outside(lambda part: part.outputs)
        """Outputs of the model itself."""

    def _outside(self, side: Callable[[LoadedModel], Sequence[TensorInfo]]) -> Sequence[TensorInfo]:
        found: dict[str, TensorInfo] = {}
        for part, names in self.calls:
            for info in side(part):
                if not info.name.startswith(_INSIDE):
                    name = names.get(info.name, info.name)
                    found[name] = TensorInfo(name, info.element, info.shape)
        return [*found.values()]

    def create_program(self) -> OffloadedProgram:
        """Create a runnable program.

        Raises:
            DeviceError: the device has no memory left.
            ModelError: weights cannot be read.
        """
        return OffloadedProgram(self, self._ring())


class OffloadedProgram(JoinedProgram):
    """One user of an offloaded model; satisfies ``protocols.Program``.

    Each layer has its own program of the block, always bound to the same slot, K and V: a run
    changes no binding. Layers read and write hidden values alternately in two places.

    Args:
        loaded: the parts.
        ring: the layers' weights.
    """

    def __init__(self, loaded: LoadedOffload, ring: WeightsRing) -> None:
        super().__init__([part.create_program() for part, _ in loaded.calls])
        self._prologue, *self._layers, self._epilogue = self._programs
        self._ring = ring
        self._weights = loaded.weights
        self._between = self._join(loaded)
        self._bind_layers()
        self._bind_others(loaded)

    def run(self) -> None:
        """Run all layers; the ring supplies their weights.

        Raises:
            DeviceError: a tensor is not bound, or the device failed.
        """
        ring, weights = self._ring, self._weights
        with ring.turn:
            ring.begin(weights)
            self._prologue.run()
            for number, program in enumerate(self._layers):
                ring.acquire(weights, number)
                program.run()
                ring.release(weights, number)
            self._epilogue.run()

    def _join(self, loaded: LoadedOffload) -> Memory:
        """Bind the links between parts; return their memory."""
        outputs = loaded.calls[0][0].outputs
        hidden = [info for info in outputs if info.name.startswith(HIDDEN_OUT)]
        shared = [info for info in outputs if info.name.startswith(SHARED)]
        turn_bytes = sum(padded(nbytes(info)) for info in hidden)
        shared_bytes = sum(padded(nbytes(info)) for info in shared)
        memory = loaded.device.allocate(2 * turn_bytes + shared_bytes)
        at = 0
        for info in hidden:
            number = info.name.removeprefix(HIDDEN_OUT)
            for turn, (one, other) in enumerate(pairwise(self._programs)):
                place = at + turn % 2 * turn_bytes
                one.bind(HIDDEN_OUT + number, memory, place)
                other.bind(HIDDEN_IN + number, memory, place)
            at += padded(nbytes(info))
        at += turn_bytes
        for info in shared:
            for (part, _), program in zip(loaded.calls, self._programs, strict=True):
                if any(info.name == port.name for port in (*part.inputs, *part.outputs)):
                    program.bind(info.name, memory, at)
            at += padded(nbytes(info))
        return memory

    def _bind_layers(self) -> None:
        """Bind the layers' weights to their slots."""
        layout = self._weights.layout
        for number, program in enumerate(self._layers):
            slot = self._ring.memory(number)
            for info, offset in zip(layout.infos, layout.offsets, strict=True):
                program.bind(info.name, slot, offset)

    def _bind_others(self, loaded: LoadedOffload) -> None:
        """Bind resident weights, and map the model's ports to the parts' programs."""
        moved = {info.name for info in self._weights.layout.infos}
        for (part, names), program in zip(loaded.calls, self._programs, strict=True):
            for info in part.inputs:
                if info.name.startswith(WEIGHT_PREFIX) and info.name not in moved:
                    place = loaded.resident.place(info)
                    program.bind(info.name, place.memory, place.offset)
            for own in sorted({info.name for info in (*part.inputs, *part.outputs)}):
                if not own.startswith(_INSIDE):
                    self._add(names.get(own, own), program, own)
