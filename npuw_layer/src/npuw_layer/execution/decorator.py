"""Base classes of what stands around a device or a loaded model, and forwards its abilities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from npuw_layer.backends.protocols import (
    Array,
    Device,
    ImportsMemory,
    LoadedModel,
    Memory,
    Program,
    SharingDevice,
    TakesAnyMemory,
    TensorInfo,
    ability,
    memory_of,
)

if TYPE_CHECKING:
    from compiler_layer.model import Model

_A = TypeVar("_A")

_OF_MEMORY = (SharingDevice, ImportsMemory, TakesAnyMemory)
"""Abilities that are those of the device whose memory is used."""


class DeviceDecorator:
    """A device around another one; satisfies ``protocols.Device`` and ``UsesMemoryOf``.

    Everything goes to the other device until a subclass says otherwise. Of optional abilities only
    those of memory are forwarded: what a decorator makes of programs the other device does not
    know. A subclass has the other abilities that it has methods for.

    Args:
        device: compiles and runs.
        memory: whose memory is used, if not that device's.
    """

    LIKE_INNER: ClassVar[Collection[type]] = ()
    """Abilities that the decorator has methods for, and has only if the other device has them."""

    def __init__(self, device: Device, memory: Device | None = None) -> None:
        self._device = device
        self._memory = memory_of(memory or device)

    @property
    def memory_device(self) -> Device:
        """The device whose memory programs are bound to."""
        return self._memory

    @property
    def version(self) -> str:
        """The device's."""
        return self._device.version

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a static graph; see ``protocols.Device``."""
        return self._device.compile(model, config)

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield the model itself: decorators look at whole models."""
        yield model

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load what ``compile`` made; see ``protocols.Device``."""
        return self._device.load(program)

    def allocate(self, nbytes: int) -> Memory:
        """Allocate memory; see ``protocols.Device``."""
        return self._memory.allocate(nbytes)

    def map_host(self, data: Array) -> Memory | None:
        """Let the device read bytes of the host in place; see ``protocols.Device``."""
        return self._memory.map_host(data)

    def ability(self, protocol: type[_A]) -> _A | None:
        """Find an optional ability; see ``protocols.ability``."""
        if protocol in _OF_MEMORY:
            return ability(self._memory, protocol)
        if protocol in self.LIKE_INNER and not self._inner_has(protocol):
            return None
        return self if isinstance(self, protocol) else None

    def _inner_has(self, protocol: type) -> bool:
        return ability(self._device, protocol) is not None


Wrap = Callable[[Program], Program]


class ModelDecorator:
    """A loaded model with something around each of its programs; satisfies ``LoadedModel``.

    Args:
        model: the model, whose abilities it keeps.
        wrap: returns what runs in place of a program.
    """

    def __init__(self, model: LoadedModel, wrap: Wrap) -> None:
        self._model = model
        self._wrap = wrap

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The model's."""
        return self._model.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The model's."""
        return self._model.outputs

    def create_program(self) -> Program:
        """Create a runnable program."""
        return self._wrap(self._model.create_program())

    def ability(self, protocol: type[_A]) -> _A | None:
        """Find an ability of the model; see ``protocols.ability``."""
        return ability(self._model, protocol)
