"""A device that runs attention tile by tile, driven from the host (HFA)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import SUBMODEL, Device, LoadedModel
from npuw_layer.execution.decorator import DeviceDecorator
from npuw_layer.execution.host_attention.container import (
    KIND,
    TilePrograms,
    read_container,
    write_container,
)
from npuw_layer.execution.host_attention.flash_model import LoadedFlash
from npuw_layer.execution.row_tiles import tile_length

if TYPE_CHECKING:
    from compiler_layer.model import Model

_log = logging.getLogger(__name__)


class FlashAttentionDevice(DeviceDecorator):
    """A device for models that consist of a single attention.

    Models without an attention over a token-major cache are compiled unchanged.

    Args:
        device: inner device, which runs the tiles.
        longest: maximum rows of a tile: a chunk. A prompt's chunk then runs one tile for each
            earlier chunk. A token's attention runs few tiles, whose cost is mostly the call.
    """

    def __init__(self, device: Device, longest: int) -> None:
        super().__init__(device)
        self._longest = longest

    @property
    def version(self) -> str:
        """Version of the inner device, and the tiles' maximum length."""
        return f"{self._device.version} HFA 2 {self._longest}"

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile the programs of an attention.

        Raises:
            ModelError: the device rejects them.
        """
        # Imported here: a warm start compiles nothing, and loads no graphs.
        from npuw_layer.execution.host_attention.pattern import find_attention
        from npuw_layer.execution.host_attention.tile_graphs import last_graph, tile_graph

        attention = find_attention(model)
        if attention is None:
            _log.warning(
                "%s: an attention is not tiled, as its ops have no known pattern",
                config.get(SUBMODEL, "a model"),
            )
            return self._device.compile(model, config)
        rows = tile_length(attention.parts, self._longest)
        own = {**config, **_AS_WRITTEN}
        tile = self._device.compile(tile_graph(attention.shape, rows), own)
        last = self._device.compile(last_graph(attention.shape), own)
        return write_container(TilePrograms(attention, rows, tile, last))

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield the graphs of the inner device."""
        return self._device.foldings(model)

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load a program of ``compile``.

        Raises:
            DeviceError: the bytes are not such a program, or the device rejects them.
        """
        if not KIND.begins(program):
            return self._device.load(program)
        return LoadedFlash(self._device, read_container(program))

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Return none: attentions have no weights; see ``protocols.FindsConstants``."""
        return ()


_AS_WRITTEN = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "ENABLE_WEIGHTLESS": "NO",
    "NPUW_FOLD": "NO",
}
"""Compiler options that keep the graph's element types; the graph has no weights."""
