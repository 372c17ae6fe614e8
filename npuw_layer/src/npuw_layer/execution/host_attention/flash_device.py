"""A device whose attention runs tile by tile, driven from the host (HFA)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import SUBMODEL, Array, Device, LoadedModel, Memory
from npuw_layer.execution.host_attention.container import (
    TilePrograms,
    is_container,
    read_container,
    write_container,
)
from npuw_layer.execution.host_attention.flash_model import LoadedFlash
from npuw_layer.execution.host_attention.tiles import tile_length

if TYPE_CHECKING:
    from compiler_layer.model import Model

_log = logging.getLogger(__name__)


class FlashAttentionDevice:
    """Runs models that are a single attention; satisfies ``backends.protocols.Device``.

    What is no attention over a cache, token by token, is compiled as it is.

    Args:
        device: computes the tiles.
        longest: rows of a tile at most: a chunk. So a prompt's chunk runs a tile for each chunk
            before it, and a token's attention, whose tiles cost mostly the call, few of them.
    """

    def __init__(self, device: Device, longest: int) -> None:
        self._device = device
        self._longest = longest

    @property
    def memory_device(self) -> Device:
        """The device, whose memory programs are bound to."""
        return self._device

    @property
    def version(self) -> str:
        """The device's, and how long tiles are."""
        return f"{self._device.version} HFA 2 {self._longest}"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile the programs of an attention.

        Raises:
            ModelError: the device does not take them.
        """
        # Imported here: a warm start, which compiles nothing, loads no graphs.
        from npuw_layer.execution.host_attention.pattern import find_attention
        from npuw_layer.execution.host_attention.tile_graphs import last_graph, tile_graph

        attention = find_attention(model)
        if attention is None:
            _log.warning("%s: an attention is not cut into tiles", config.get(SUBMODEL, "a model"))
            return self._device.compile(model, config)
        rows = tile_length(attention.pieces, self._longest)
        own = {**config, **_AS_WRITTEN}
        tile = self._device.compile(tile_graph(attention.shape, rows), own)
        last = self._device.compile(last_graph(attention.shape), own)
        return write_container(TilePrograms(attention, rows, tile, last))

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give what the device gives."""
        return self._device.foldings(model)

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load what ``compile`` made.

        Raises:
            DeviceError: the bytes are something else, or the device does not take them.
        """
        if not is_container(program):
            return self._device.load(program)
        return LoadedFlash(self._device, read_container(program))

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Nothing of it is used in place: an attention has no weights; see ``ports``."""
        return ()

    def allocate(self, nbytes: int) -> Memory:
        """Take memory; see ``backends.protocols.Device``."""
        return self._device.allocate(nbytes)

    def map_host(self, data: Array) -> Memory | None:
        """Let the device reach bytes of the host; see ``backends.protocols.Device``."""
        return self._device.map_host(data)


_AS_WRITTEN = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "ENABLE_WEIGHTLESS": "NO",
    "NPUW_FOLD": "NO",
}
"""How a compiler leaves element types as they are in the graph; there are no weights in it."""
