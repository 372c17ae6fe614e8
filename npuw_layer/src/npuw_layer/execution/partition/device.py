"""A device that runs partitioned models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import (
    STATIC_MODEL,
    SUBMODEL,
    Device,
    FindsConstants,
    LoadedModel,
    ReadsModelInputs,
    TensorInfo,
    ability,
)
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.execution.decorator import DeviceDecorator
from npuw_layer.execution.devices.pins import kind_of
from npuw_layer.execution.partition.container import (
    KIND,
    Call,
    read_container,
    write_container,
)
from npuw_layer.execution.partition.model import LoadedParts
from npuw_layer.execution.partition.ports import Isolation, Listener

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import Part

Isolations = Mapping[str, Mapping[str, Isolation]]
"""Isolations by tag, for each kind of submodel ("prefill", "generate", "head")."""


class PartitioningDevice(DeviceDecorator):
    """A device that cuts models around groups of ops, and runs the parts.

    Models without such groups are not cut.

    Args:
        device: runs the parts between groups; all parts share its memory.
        isolations: find and run the groups.
        no_fold: tags whose parts are compiled one by one, even if they are equal.
        listeners: receive the parts of each model, and failures of compilation.
    """

    LIKE_INNER = (FindsConstants,)

    def __init__(
        self,
        device: Device,
        isolations: Isolations,
        no_fold: Collection[str] = (),
        listeners: Sequence[Listener] = (),
    ) -> None:
        super().__init__(device)
        self._isolations = isolations
        self._no_fold = no_fold
        self._listeners = listeners

    @property
    def version(self) -> str:
        """Versions of the inner device, and of the groups' devices."""
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
        """Compile the parts of a model; return its program, and the calls of the parts."""
        if len(parts) == 1 and not parts[0].tag:
            return self._device.compile(model, config), [Call(function=0, names={})]
        # Imported here: a warm start compiles nothing, and loads no graphs.
        from npuw_layer.backends.interpreter import port_info
        from npuw_layer.execution.partition.compile import compile_parts

        inputs = [port_info(port) for port in model.inputs]
        groups = {tag: _within(each.device, inputs) for tag, each in isolations.items()}
        devices = {"": self._device} | groups
        # Lowering has chosen element types: choosing again would widen links to f32.
        as_lowered = {**config, "INFERENCE_PRECISION_HINT": "f32"}
        outputs = [port.name for port in model.outputs]
        compiled = compile_parts(parts, devices, as_lowered, self._no_fold, inputs, outputs)
        return write_container(compiled), compiled.calls

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load a program of ``compile``.

        Raises:
            DeviceError: the bytes are not such a program, or for another device.
        """
        if not KIND.begins(program):
            return self._device.load(program)
        parts = read_container(program)
        loaded = [self._device_of(one.tag).load(one.program) for one in parts.functions]
        return LoadedParts(self._device, parts, loaded)

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Return the inner device's; none for a partitioned model, as its weights are in files."""
        finds = ability(self._device, FindsConstants)
        return () if finds is None or KIND.begins(program) else finds.constants(program)

    def _device_of(self, tag: str) -> Device:
        if not tag:
            return self._device
        for by_tag in self._isolations.values():
            if tag in by_tag:
                return by_tag[tag].device
        raise DeviceError(f"a partitioned model has groups {tag!r}, which no option isolates")


def _within(device: Device, inputs: Sequence[TensorInfo]) -> Device:
    """Pass a model's inputs to a device that runs its groups, if the device reads them."""
    reads = ability(device, ReadsModelInputs)
    return device if reads is None else reads.within(inputs)


def _cut(
    model: Model, isolations: Mapping[str, Isolation], config: Mapping[str, str]
) -> Sequence[Part]:
    """Cut a model; without groups, the complete model is one part.

    Raises:
        ModelError: groups overlap, or cannot run separately.
    """
    from compiler_layer.errors import CompilerError
    from compiler_layer.partition.parts import cut_parts
    from compiler_layer.pipeline import Options, lower_graph

    lowered = model.clone()
    try:
        lower_graph(lowered, Options(precision=config["INFERENCE_PRECISION_HINT"]))
        groups = [group for each in isolations.values() for group in each.groups(lowered)]
        return cut_parts(lowered, groups)
    except CompilerError as error:
        raise ModelError(f"the model cannot be cut: {error}") from error
