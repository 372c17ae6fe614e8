"""A device for mixtures of experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from npuw_layer.experts.compile import compile_experts
from npuw_layer.experts.container import read_container
from npuw_layer.experts.program import LoadedExperts
from npuw_layer.ports import Array, Device, Memory

if TYPE_CHECKING:
    from compiler_layer.model import Model


class HostRoutedDevice:
    """Runs of a mixture the experts that were chosen, on another device.

    It satisfies ``ports.Device`` for models that are one mixture each, such as the parts that a
    model is cut into.

    Args:
        device: what compiles and runs the experts.
        chunk: NPUW_MOE_TOKEN_CHUNK_SIZE.
        pool_size: NPUW_MOE_POOL_SIZE.
    """

    def __init__(self, device: Device, chunk: int, pool_size: int) -> None:
        self._device = device
        self._chunk = chunk
        self._pool_size = pool_size

    @property
    def memory_device(self) -> Device:
        """The device, whose memory programs are bound to."""
        return self._device

    @property
    def version(self) -> str:
        """The device's; a mixture whose experts are run apart is another program."""
        return f"{self._device.version} experts"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile the experts of a mixture.

        Raises:
            ModelError: it is none, or is not supported.
        """
        return compile_experts(model, self._device, config, self._chunk)

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give the model itself: a mixture has no layers."""
        yield model

    def load(self, program: bytes | memoryview) -> LoadedExperts:
        """Load the experts of a mixture.

        Raises:
            DeviceError: the bytes are no such mixture, or for another device.
        """
        found = read_container(program)
        loaded = [self._device.load(each) for each in found.programs]
        return LoadedExperts(self._device, found.routed, loaded, self._pool_size)

    def map_host(self, data: Array) -> Memory | None:
        """Let the device reach bytes of the host; see ``ports.Device``."""
        return self._device.map_host(data)

    def allocate(self, nbytes: int) -> Memory:
        """Take memory; see ``ports.Device``."""
        return self._device.allocate(nbytes)
