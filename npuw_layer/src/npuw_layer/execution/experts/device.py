"""A device for mixtures of experts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.host_tensors import place_contents
from npuw_layer.backends.protocols import CompilesFunctions, Device, LoadedModel
from npuw_layer.execution.decorator import DeviceDecorator
from npuw_layer.execution.experts.container import RoutedPrograms, read_container, write_container
from npuw_layer.execution.experts.program import LoadedExperts
from npuw_layer.execution.partition.ports import Isolation

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.compiled import CompiledFunction
    from compiler_layer.partition.parts import PartOps
    from npuw_layer.execution.experts.compile import ExpertPrograms
    from npuw_layer.execution.experts.container import Routed

_log = logging.getLogger(__name__)

TAG = "MOE"
"""Tag of the parts of a model that are mixtures of experts."""


class HostRoutedDevice(DeviceDecorator):
    """A device for models of one mixture each; it runs the chosen experts on an inner device.

    Args:
        device: device that compiles and runs the experts.
        chunk: NPUW_MOE_TOKEN_CHUNK_SIZE.
        pool_size: NPUW_MOE_POOL_SIZE.
    """

    LIKE_INNER = (CompilesFunctions,)

    def __init__(self, device: Device, chunk: int, pool_size: int) -> None:
        super().__init__(device)
        self._chunk = chunk
        self._pool_size = pool_size

    @property
    def version(self) -> str:
        """Version of the inner device, and the row count, which changes the experts' programs."""
        return f"{self._device.version} HOST_ROUTED by {self._chunk or 'average'}"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile the experts of a mixture.

        Raises:
            ModelError: the model is not a single mixture, or is not supported.
        """
        routed, made = self._compiled(model, config)
        literals = {name: values[0] for name, values in made.literals.items()}
        return write_container(RoutedPrograms(routed, made.programs, literals))

    def compile_function(self, model: Model, config: Mapping[str, str]) -> CompiledFunction:
        """Compile the experts of equal mixtures: one expert represents those of all layers.

        Raises:
            ModelError: a model is not a single mixture, or is not supported.
        """
        from compiler_layer.partition.compiled import CompiledFunction

        routed, made = self._compiled(model, config)
        program = write_container(RoutedPrograms(routed, made.programs, {}))
        return CompiledFunction(program, made.weights, made.literals)

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load the experts of a mixture.

        Raises:
            DeviceError: the bytes are not a partitioned mixture, or for another device.
        """
        found = read_container(program)
        loaded = [self._device.load(each) for each in found.programs]
        literals = place_contents(found.literals, self._device)
        return LoadedExperts(self._device, found.routed, loaded, literals, self._pool_size)

    def _compiled(self, model: Model, config: Mapping[str, str]) -> tuple[Routed, ExpertPrograms]:
        # Imported here: a warm start compiles nothing, and loads no graphs.
        from npuw_layer.execution.experts.compile import compile_experts

        return compile_experts(model, self._device, config, self._chunk)


def routed_experts(device: Device, chunk: int, pool_size: int) -> Isolation:
    """Return the isolation of mixtures of experts; arguments as of ``HostRoutedDevice``."""
    return Isolation(HostRoutedDevice(device, chunk, pool_size), _mixtures)


def _mixtures(model: Model) -> Sequence[PartOps]:
    """Find the mixtures of a model."""
    from compiler_layer.partition.mixtures.find import find_mixtures
    from compiler_layer.partition.parts import PartOps

    found = find_mixtures(model)
    if not found:
        _log.info("HOST_ROUTED: the model has no mixture of experts; no op is isolated")
    return [PartOps(TAG, mixture.ops) for mixture in found]
