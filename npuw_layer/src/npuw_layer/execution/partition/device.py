"""A device whose models run in parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import (
    STATIC_MODEL,
    SUBMODEL,
    Array,
    Device,
    FindsConstants,
    LoadedModel,
    Memory,
    TensorInfo,
    UsesMemoryOf,
)
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.execution.devices.pins import kind_of
from npuw_layer.execution.partition.container import (
    Call,
    is_container,
    read_container,
    write_container,
)
from npuw_layer.execution.partition.model import LoadedParts
from npuw_layer.execution.partition.ports import Isolation, Listener, ReadsModelInputs

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.passes.partition.parts import Part

Isolations = Mapping[str, Mapping[str, Isolation]]
"""For each kind of submodel ("prefill", "generate", "head") the ways of running groups, by tag."""


class PartitioningDevice:
    """Cuts models around groups of ops, and runs the parts; satisfies ``Device``.

    Models without such groups run as they are.

    Args:
        device: runs what lies between groups; all parts share its memory.
        isolations: run the groups.
        no_fold: tags whose parts are compiled one by one, even if they are equal.
        listeners: are told what is cut, and what cannot be compiled.
    """

    def __init__(
        self,
        device: Device,
        isolations: Isolations,
        no_fold: Collection[str] = (),
        listeners: Sequence[Listener] = (),
    ) -> None:
        self._device = device
        self._isolations = isolations
        self._no_fold = no_fold
        self._listeners = listeners

    @property
    def memory_device(self) -> Device:
        """The device whose memory programs are bound to."""
        return (
            self._device.memory_device if isinstance(self._device, UsesMemoryOf) else self._device
        )

    @property
    def version(self) -> str:
        """The device's, and those of what runs groups."""
        groups = [
            f"{kind} {tag} {each.device.version}"
            for kind, by_tag in sorted(self._isolations.items())
            for tag, each in sorted(by_tag.items())
        ]
        return " | ".join((self._device.version, *groups))

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Cut a graph, and compile its parts.

        Raises:
            ModelError: a part is not supported, or does not fit.
        """
        submodel = config.get(SUBMODEL, "")
        isolations = self._isolations.get(kind_of(submodel), {})
        if not isolations and not self._listeners:
            return self._device.compile(model, config)
        name = submodel or STATIC_MODEL
        for listener in self._listeners:
            listener.whole(name, model)
        parts = _cut(model, isolations, config)
        try:
            program, calls = self._compile_parts(model, parts, isolations, config)
        except RuntimeError as error:
            for listener in self._listeners:
                listener.failed(name, parts, error)
            raise
        for listener in self._listeners:
            listener.cut(name, parts, calls)
        return program

    def _compile_parts(
        self,
        model: Model,
        parts: Sequence[Part],
        isolations: Mapping[str, Isolation],
        config: Mapping[str, str],
    ) -> tuple[bytes, Sequence[Call]]:
        """Compile what a model was cut into; give its program, and the calls of the parts."""
        if len(parts) == 1 and not parts[0].tag:
            return self._device.compile(model, config), [Call(function=0, names={})]
        # Imported here: a warm start, which compiles nothing, loads no graphs.
        from npuw_layer.execution.partition.compile import compile_parts

        inputs = _infos(model)
        groups = {tag: _within(each.device, inputs) for tag, each in isolations.items()}
        devices = {"": self._device} | groups
        # Element types are chosen: who did it again would widen what links parts to f32.
        as_lowered = {**config, "INFERENCE_PRECISION_HINT": "f32"}
        outputs = [port.name for port in model.outputs]
        compiled = compile_parts(parts, devices, as_lowered, self._no_fold, inputs, outputs)
        return write_container(compiled), compiled.calls

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give the model itself: it is cut before equal parts are found."""
        yield model

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load what ``compile`` made.

        Raises:
            DeviceError: the bytes are something else, or for another device.
        """
        if not is_container(program):
            return self._device.load(program)
        parts = read_container(program)
        loaded = [self._device_of(one.tag).load(one.program) for one in parts.functions]
        return LoadedParts(self._device, parts, loaded)

    def allocate(self, nbytes: int) -> Memory:
        """Take memory; see ``backends.protocols.Device``."""
        return self._device.allocate(nbytes)

    def map_host(self, data: Array) -> Memory | None:
        """Let the device reach bytes of the host; see ``backends.protocols.Device``."""
        return self._device.map_host(data)

    def _device_of(self, tag: str) -> Device:
        if not tag:
            return self._device
        for by_tag in self._isolations.values():
            if tag in by_tag:
                return by_tag[tag].device
        raise DeviceError(f"a model in parts has groups {tag!r}, which nobody runs")


class ConstantFindingDevice(PartitioningDevice):
    """The same, where programs name no file by its path (``backends.protocols.FindsConstants``)."""

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Give what the device uses in place; of a model in parts nothing: weights are in files."""
        if is_container(program) or not isinstance(self._device, FindsConstants):
            return ()
        return self._device.constants(program)


def partitioning(
    device: Device,
    isolations: Isolations,
    no_fold: Collection[str] = (),
    listeners: Sequence[Listener] = (),
) -> Device:
    """Let a device run models in parts; the device itself if there is nothing to do."""
    if not any(isolations.values()) and not listeners:
        return device
    finds = isinstance(device, FindsConstants)
    kind = ConstantFindingDevice if finds else PartitioningDevice
    return kind(device, isolations, no_fold, listeners)


def _within(device: Device, inputs: Sequence[TensorInfo]) -> Device:
    """Tell a device that runs groups of which model they are, if it asks."""
    return device.within(inputs) if isinstance(device, ReadsModelInputs) else device


def _infos(model: Model) -> list[TensorInfo]:
    """A model's inputs, variables aside."""
    from compiler_layer.dialects.ov.types import element_of, shape_of

    return [
        TensorInfo(port.name, element_of(port.value), shape_of(port.value)) for port in model.inputs
    ]


def _cut(
    model: Model, isolations: Mapping[str, Isolation], config: Mapping[str, str]
) -> Sequence[Part]:
    """Cut a model; the whole of it is one part if it has no groups.

    Raises:
        ModelError: groups overlap, or cannot stand alone.
    """
    from compiler_layer.errors import CompilerError
    from compiler_layer.passes.partition.parts import cut_parts
    from compiler_layer.pipeline import Options, lower_graph

    lowered = model.clone()
    try:
        lower_graph(lowered, Options(precision=config["INFERENCE_PRECISION_HINT"]))
        groups = [group for each in isolations.values() for group in each.groups(lowered)]
        return cut_parts(lowered, groups)
    except CompilerError as error:
        raise ModelError(f"the model cannot be cut: {error}") from error
