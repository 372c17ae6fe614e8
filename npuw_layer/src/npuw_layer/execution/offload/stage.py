"""One offloaded static model, loaded: its weights, and its predicted times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from compiler_layer.partition.compiled import LITERAL_PREFIX, CompiledParts
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.protocols import (
    LoadedModel,
    OffloadingDevice,
    TensorInfo,
)
from npuw_layer.errors import DeviceError
from npuw_layer.execution.offload.plan import OffloadPlan
from npuw_layer.execution.offload.report import StageTimes
from npuw_layer.execution.offload.ring import LayerWeights
from npuw_layer.execution.offload.sources import HostWeights, SlotLayout
from npuw_layer.execution.offload.timeline import (
    PartCosts,
    asynchronous_pass,
    resident_pass,
    synchronous_pass,
)
from npuw_layer.tensors.names import MASK
from npuw_layer.tensors.token_inputs import new_tokens_of


@dataclass(frozen=True, eq=False)
class OffloadedModel:
    """The parts of one static model.

    Attributes:
        device: the parts' device.
        parts: the blobs.
        prologue: runs first.
        block: runs once for each layer.
        epilogue: runs last.
        weights: weights of the layers.
        resident: all other weights.
    """

    device: OffloadingDevice
    parts: CompiledParts
    prologue: LoadedModel
    block: LoadedModel
    epilogue: LoadedModel
    weights: LayerWeights
    resident: tuple[TensorInfo, ...]

    @property
    def layers(self) -> int:
        """Number of runs of the block."""
        return self.parts.count

    @property
    def name(self) -> str:
        """Number of new and of past tokens, as readable text."""
        shapes = {info.name: info.shape for info in self.prologue.inputs}
        tokens = new_tokens_of(shapes)
        if tokens is None or MASK not in shapes:
            return "a model"
        return f"{tokens} tokens after {shapes[MASK][-1] - tokens}"

    def in_model(self, layer: int) -> dict[str, str]:
        """Return the model's names of the block's variables, for one of the layers."""
        return {own: names[layer] for own, names in self.parts.states.items()}

    @cached_property
    def _costs(self) -> PartCosts:
        """Predicted costs of the parts and of copying a layer's weights."""
        device = self.device
        return PartCosts(
            prologue=device.predict(self.parts.prologue),
            layer=device.predict(self.parts.block),
            epilogue=device.predict(self.parts.epilogue),
            copy=device.predict_copy(self.weights.layout.nbytes),
        )

    def times(self, plan: OffloadPlan) -> StageTimes:
        """Return the predicted times of a pass: resident, synchronous and asynchronous."""
        costs = self._costs
        return StageTimes(
            self.name,
            resident_pass(costs, self.layers),
            synchronous_pass(costs, plan),
            asynchronous_pass(costs, plan, self.device.ddr_bytes_per_ns),
        )


def load_stage(
    device: OffloadingDevice,
    parts: CompiledParts,
    host: HostWeights,
    known: dict[object, LayerWeights],
) -> OffloadedModel:
    """Load the parts of one static model.

    Args:
        device: the parts' device.
        parts: the blobs.
        host: source of the weights.
        known: weights of layers by layout and names, shared by the static models of one LLM.

    Raises:
        DeviceError: a blob is for another device, or requires weights without a name.
        ModelError: the model's files lack a weight.
    """
    prologue, block, epilogue = (
        device.load(blob) for blob in (parts.prologue, parts.block, parts.epilogue)
    )
    moved = [
        info
        for info in block.inputs
        if info.name in parts.weights or info.name.startswith(LITERAL_PREFIX)
    ]
    unknown = [one.name for one in moved if one.name not in {**parts.weights, **parts.literals}]
    if unknown or not moved:
        raise DeviceError(f"an offloaded model lacks names of weights of {unknown or 'its layers'}")
    layout = SlotLayout.of(moved)
    key = (layout, tuple(_contents(parts, info.name) for info in layout.infos))
    if key not in known:
        sources = [host.layer(parts, layout.infos, number) for number in range(parts.count)]
        known[key] = LayerWeights(layout, sources)
    names = {info.name for info in moved}
    resident = {
        info.name: info
        for piece in (prologue, block, epilogue)
        for info in piece.inputs
        if info.name.startswith(WEIGHT_PREFIX) and info.name not in names
    }
    others = tuple(resident.values())
    return OffloadedModel(device, parts, prologue, block, epilogue, known[key], others)


def _contents(parts: CompiledParts, name: str) -> tuple[str | bytes, ...]:
    return parts.weights.get(name) or parts.literals[name]
