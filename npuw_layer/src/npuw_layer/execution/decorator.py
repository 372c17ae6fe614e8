"""Base classes of wrappers around a device or a loaded model, which forward its abilities."""

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
"""Abilities that belong to the device that owns the memory."""


class DeviceDecorator:
    """A device around another one; satisfies ``protocols.Device`` and ``UsesMemoryOf``.

    All methods forward to the inner device unless a subclass overrides them. Of optional abilities,
    only those of memory are forwarded, because the inner device does not support the decorator's
    programs. A subclass has the other abilities whose methods it implements.

    Args:
        device: inner device, which compiles and runs.
        memory: device that owns the memory; None for the inner device.
    """

    LIKE_INNER: ClassVar[Collection[type]] = ()
    """Abilities whose methods the decorator has, available only if the inner device has them."""

    def __init__(self, device: Device, memory: Device | None = None) -> None:
        self._device = device
        self.memory_device = memory_of(memory or device)
        """Device whose memory programs are bound to."""

    @property
    def version(self) -> str:
        """Version of the inner device."""
        return self._device.version

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a static graph; see ``protocols.Device``."""
        return self._device.compile(model, config)

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield the model itself: decorators require unfolded models."""
        yield model

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load a program of ``compile``; see ``protocols.Device``."""
        return self._device.load(program)

    def allocate(self, nbytes: int) -> Memory:
        """Allocate memory; see ``protocols.Device``."""
        return self.memory_device.allocate(nbytes)

    def map_host(self, data: Array) -> Memory | None:
        """Map host bytes into device memory, in place; see ``protocols.Device``."""
        return self.memory_device.map_host(data)

    def ability(self, protocol: type[_A]) -> _A | None:
        """Find an optional ability; see ``protocols.ability``."""
        if protocol in _OF_MEMORY:
            return ability(self.memory_device, protocol)
        if protocol in self.LIKE_INNER and not self._inner_has(protocol):
            return None
        return self if isinstance(self, protocol) else None

    def _inner_has(self, protocol: type) -> bool:
        return ability(self._device, protocol) is not None


Wrap = Callable[[Program], Program]


class ModelDecorator:
    """A loaded model with a wrapper around each of its programs; satisfies ``LoadedModel``.

    Args:
        model: the model, whose abilities are kept.
        wrap: returns the wrapper of a program.
    """

    def __init__(self, model: LoadedModel, wrap: Wrap) -> None:
        self._model = model
        self._wrap = wrap

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """Inputs of the model."""
        return self._model.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """Outputs of the model."""
        return self._model.outputs

    def create_program(self) -> Program:
        """Create a runnable program."""
        return self._wrap(self._model.create_program())

    def ability(self, protocol: type[_A]) -> _A | None:
        """Find an ability of the model; see ``protocols.ability``."""
        return ability(self._model, protocol)
