"""A device that runs row-wise models in token tiles."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import (
    SUBMODEL,
    CompilesFunctions,
    Device,
    LoadedModel,
    TensorInfo,
    ability,
)
from npuw_layer.execution.decorator import DeviceDecorator
from npuw_layer.execution.token_tiles.container import (
    KIND,
    MaskEntry,
    Tiling,
    read_container,
    write_container,
)
from npuw_layer.execution.token_tiles.program import LoadedRowTiles
from npuw_layer.execution.token_tiles.tokens import find_mask

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.compiled import CompiledFunction

_log = logging.getLogger(__name__)


class RowTilesDevice(DeviceDecorator):
    """A device for models that consist of one block each.

    A model that mixes rows, or has no more rows than a tile, is compiled unchanged.

    Args:
        device: inner device, which runs the tiles.
        size: rows of a tile (NPUW_SPATIAL_NWAY).
        leaves_out: whether to skip tiles without tokens (NPUW_SPATIAL_DYN).
        inputs: inputs of the model that contains the blocks, among them its mask.
    """

    LIKE_INNER = (CompilesFunctions,)

    def __init__(
        self, device: Device, size: int, leaves_out: bool, inputs: Sequence[TensorInfo] = ()
    ) -> None:
        super().__init__(device)
        self._size = size
        self._leaves_out = leaves_out
        self._model_inputs = inputs

    @property
    def version(self) -> str:
        """Version of the inner device, and the tiling."""
        return f"{self._device.version} SPATIAL 1 {self._size} {self._leaves_out}"

    def within(self, inputs: Sequence[TensorInfo]) -> Device:
        """Return this device for the parts of a model; see ``protocols.ReadsModelInputs``."""
        return RowTilesDevice(self._device, self._size, self._leaves_out, inputs)

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile the program of a tile.

        Raises:
            ModelError: the device rejects it.
        """
        found = self._tile(model, config)
        if found is None:
            return self._device.compile(model, config)
        tiling, tile = found
        return write_container(tiling, self._device.compile(tile, config))

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load a program of ``compile``.

        Raises:
            DeviceError: the bytes are not such a program, or the device rejects them.
        """
        if not KIND.begins(program):
            return self._device.load(program)
        tiling, tile = read_container(program)
        return LoadedRowTiles(self._device.load(tile), tiling)

    def compile_function(self, model: Model, config: Mapping[str, str]) -> CompiledFunction:
        """Compile the program of a tile of equal blocks.

        Raises:
            ModelError: the device rejects it.
        """
        from compiler_layer.partition.compiled import CompiledFunction

        device = ability(self._device, CompilesFunctions)
        assert device is not None  # implied by LIKE_INNER
        found = self._tile(model, config)
        if found is None:
            return device.compile_function(model, config)
        tiling, tile = found
        made = device.compile_function(tile, config)
        program = write_container(tiling, made.blob)
        return CompiledFunction(program, made.weights, made.literals)

    def _tile(self, model: Model, config: Mapping[str, str]) -> tuple[Tiling, Model] | None:
        """Cut a block; None if cutting is impossible or unnecessary."""
        # Imported here: a warm start compiles nothing, and loads no graphs.
        from compiler_layer.partition.row_wise import find_rows, tile_model

        rows = find_rows(model)
        if rows is None:
            _log.info("%s: mixes rows, and is not tiled", config.get(SUBMODEL, "a block"))
            return None
        if rows.count <= self._size:
            return None
        mask = find_mask(self._model_inputs, rows.count) if self._leaves_out else None
        ports = (*model.inputs, *model.outputs)
        tiling = Tiling(
            rows=rows.count,
            size=self._size,
            ports=tuple(port.name for port in ports if port.value in rows.values),
            mask=MaskEntry(element=mask.element, columns=mask.shape[1]) if mask else None,
        )
        return tiling, tile_model(model, rows, self._size)
