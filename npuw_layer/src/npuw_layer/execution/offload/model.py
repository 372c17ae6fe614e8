"""The parts of an offloaded model as one loaded model, and its programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from compiler_layer.partition.compiled import HIDDEN_IN, HIDDEN_OUT, LITERAL_PREFIX, SHARED
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import nbytes, padded
from npuw_layer.backends.protocols import Device, Memory, Program, TensorInfo
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
        self.stage = stage
        self.resident = resident
        self._ring = ring
        self.names = [stage.in_model(layer) for layer in range(stage.layers)]
        """The model's names of the block's variables, for each layer."""

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """Inputs of the model itself, each once."""
        stage = self.stage
        ports = [*self._outside(stage.prologue.inputs), *self._of_layers(stage.block.inputs)]
        ports += self._outside(stage.epilogue.inputs)
        return list({info.name: info for info in ports}.values())

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """Outputs of the model itself."""
        stage = self.stage
        ports = [*self._outside(stage.prologue.outputs), *self._of_layers(stage.block.outputs)]
        return [*ports, *self._outside(stage.epilogue.outputs)]

    @staticmethod
    def _outside(infos: Sequence[TensorInfo]) -> Iterator[TensorInfo]:
        return (info for info in infos if not info.name.startswith(_INSIDE))

    def _of_layers(self, infos: Sequence[TensorInfo]) -> Iterator[TensorInfo]:
        """Yield the block's ports of each layer, by their names in the model."""
        own = list(self._outside(infos))
        for names in self.names:
            for info in own:
                name = names.get(info.name, info.name)
                yield TensorInfo(name, info.element, info.shape)

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
        stage = loaded.stage
        self._ring = ring
        self._weights = stage.weights
        self._prologue = stage.prologue.create_program()
        self._layers = [stage.block.create_program() for _ in loaded.names]
        self._epilogue = stage.epilogue.create_program()
        super().__init__((self._prologue, *self._layers, self._epilogue))
        self._users = (
            (stage.prologue, [self._prologue]),
            (stage.block, self._layers),
            (stage.epilogue, [self._epilogue]),
        )
        self._between = self._join(loaded.device)
        self._bind_weights(loaded.resident)
        self._route(loaded.names)

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

    def _join(self, device: Device) -> Memory:
        """Bind the links between parts; return their memory."""
        outputs = self._users[0][0].outputs
        hidden = [info for info in outputs if info.name.startswith(HIDDEN_OUT)]
        shared = [info for info in outputs if info.name.startswith(SHARED)]
        turn_bytes = sum(padded(nbytes(info)) for info in hidden)
        memory = device.allocate(2 * turn_bytes + sum(padded(nbytes(info)) for info in shared))
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
            for piece, programs in self._users:
                if any(info.name == port.name for port in (*piece.inputs, *piece.outputs)):
                    _bind_all(programs, info.name, memory, at)
            at += padded(nbytes(info))
        return memory

    def _bind_weights(self, resident: ResidentWeights) -> None:
        layout = self._weights.layout
        for number, program in enumerate(self._layers):
            slot = self._ring.memory(number)
            for info, offset in zip(layout.infos, layout.offsets, strict=True):
                program.bind(info.name, slot, offset)
        moved = {info.name for info in layout.infos}
        for piece, programs in self._users:
            for info in piece.inputs:
                if info.name.startswith(WEIGHT_PREFIX) and info.name not in moved:
                    place = resident.place(info)
                    _bind_all(programs, info.name, place.memory, place.offset)

    def _route(self, names_of_layers: Sequence[Mapping[str, str]]) -> None:
        """Map the model's ports to the parts' programs."""
        for piece, programs in self._users:
            ports = {info.name for info in (*piece.inputs, *piece.outputs)}
            names = names_of_layers if programs is self._layers else [dict[str, str]()]
            for program, its in zip(programs, names, strict=True):
                for own in sorted(port for port in ports if not port.startswith(_INSIDE)):
                    self._add(its.get(own, own), program, own)


def _bind_all(programs: Sequence[Program], name: str, memory: Memory, offset: int) -> None:
    for program in programs:
        program.bind(name, memory, offset)
