"""A device whose models run in tiles of rows, if they compute each row by itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import SUBMODEL, Array, Device, LoadedModel, Memory, TensorInfo
from npuw_layer.execution.partition.ports import CompilesFunctions
from npuw_layer.execution.token_tiles.container import (
    MaskEntry,
    TileProgram,
    Tiling,
    is_container,
    read_container,
    write_container,
)
from npuw_layer.execution.token_tiles.program import LoadedRowTiles
from npuw_layer.execution.token_tiles.tokens import find_mask

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.pieces import CompiledFunction

_log = logging.getLogger(__name__)


class RowTilesDevice:
    """Runs models that are one block each; satisfies ``backends.protocols.Device``.

    What mixes rows, or has no more of them than a tile, is compiled as it is.

    Args:
        device: runs the tiles.
        size: rows of a tile (NPUW_SPATIAL_NWAY).
        leaves_out: whether tiles without tokens are not run (NPUW_SPATIAL_DYN).
        inputs: of the model that the blocks are parts of: which of them is its mask.
    """

    def __init__(
        self, device: Device, size: int, leaves_out: bool, inputs: Sequence[TensorInfo] = ()
    ) -> None:
        self._device = device
        self._size = size
        self._leaves_out = leaves_out
        self._model_inputs = inputs

    @property
    def memory_device(self) -> Device:
        """The device, whose memory programs are bound to."""
        return self._device

    @property
    def version(self) -> str:
        """The device's, and how blocks are cut."""
        return f"{self._device.version} SPATIAL 1 {self._size} {self._leaves_out}"

    def within(self, inputs: Sequence[TensorInfo]) -> Device:
        """Give the same for parts of a model; see ``ReadsModelInputs``."""
        return type(self)(self._device, self._size, self._leaves_out, inputs)

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile the program of a tile.

        Raises:
            ModelError: the device does not take it.
        """
        found = self._tile(model, config)
        if found is None:
            return self._device.compile(model, config)
        tiling, tile = found
        return write_container(TileProgram(tiling, self._device.compile(tile, config)))

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give the model itself: a block has no layers."""
        yield model

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load what ``compile`` made.

        Raises:
            DeviceError: the bytes are something else, or the device does not take them.
        """
        if not is_container(program):
            return self._device.load(program)
        found = read_container(program)
        return LoadedRowTiles(self._device.load(found.program), found.tiling)

    def allocate(self, nbytes: int) -> Memory:
        """Take memory; see ``backends.protocols.Device``."""
        return self._device.allocate(nbytes)

    def map_host(self, data: Array) -> Memory | None:
        """Let the device reach bytes of the host; see ``backends.protocols.Device``."""
        return self._device.map_host(data)

    def _tile(self, model: Model, config: Mapping[str, str]) -> tuple[Tiling, Model] | None:
        """Cut a block; None if that is not possible, or needless."""
        # Imported here: a warm start, which compiles nothing, loads no graphs.
        from compiler_layer.passes.partition.row_tiles import tile_model
        from compiler_layer.passes.partition.row_wise import find_rows

        rows = find_rows(model)
        if rows is None:
            _log.info("%s: mixes rows, and runs whole", config.get(SUBMODEL, "a block"))
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


class FunctionRowTilesDevice(RowTilesDevice):
    """The same on a device that gives equal parts one program (``CompilesFunctions``)."""

    def compile_function(self, model: Model, config: Mapping[str, str]) -> CompiledFunction:
        """Compile the program of a tile of equal blocks.

        Raises:
            ModelError: the device does not take it.
        """
        from compiler_layer.pieces import CompiledFunction

        assert isinstance(self._device, CompilesFunctions)  # row_tiles() sees to it
        found = self._tile(model, config)
        if found is None:
            return self._device.compile_function(model, config)
        tiling, tile = found
        made = self._device.compile_function(tile, config)
        program = write_container(TileProgram(tiling, made.blob))
        return CompiledFunction(program, made.weights, made.literals)


def row_tiles(device: Device, size: int, leaves_out: bool) -> RowTilesDevice:
    """Let a device run blocks in tiles; see ``RowTilesDevice``."""
    kind = FunctionRowTilesDevice if isinstance(device, CompilesFunctions) else RowTilesDevice
    return kind(device, size, leaves_out)
