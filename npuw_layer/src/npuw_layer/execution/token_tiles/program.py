"""A tiled block as one loaded model, and its programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.host_tensors import Place, view
from npuw_layer.backends.protocols import Array, LoadedModel, Memory, TensorInfo, is_seen
from npuw_layer.errors import DeviceError
from npuw_layer.execution.row_tiles import RowTile, cut_tiles
from npuw_layer.execution.token_tiles.container import Tiling
from npuw_layer.execution.token_tiles.tokens import used_rows
from npuw_layer.tensors.names import MASK


class LoadedRowTiles:
    """A tile's program in the form of the block's; satisfies ``protocols.LoadedModel``.

    Args:
        tile: the program.
        tiling: tiling of the block.

    Raises:
        DeviceError: the program is that of another block.
    """

    def __init__(self, tile: LoadedModel, tiling: Tiling) -> None:
        self.tile = tile
        self.tiling = tiling
        self.runs = 0
        """Tiles run so far."""
        ports = (*tile.inputs, *tile.outputs)
        names = {info.name for info in ports}
        outputs = {info.name for info in tile.outputs}
        if MASK in names or not outputs <= {*tiling.ports} <= names:
            raise _another()
        self.outputs: Sequence[TensorInfo] = [self._whole(info) for info in tile.outputs]
        """Outputs of the block, with all rows."""
        mask = [tiling.mask.info] if tiling.mask else []
        self.inputs: Sequence[TensorInfo] = [*(self._whole(info) for info in tile.inputs), *mask]
        """Inputs of the block, and the mask of the model that contains the block."""
        self.members: Sequence[tuple[str, LoadedModel]] = [("tile", tile)]
        """Program of the tile; see ``execution.devices.report``."""

    @property
    def placed(self) -> Sequence[TensorInfo]:
        """Inputs and outputs that the host locates: rows, and the mask."""
        names = {*self.tiling.ports, MASK}
        return [info for info in (*self.inputs, *self.outputs) if info.name in names]

    def tiles(self) -> Iterator[RowTile]:
        """Yield the tiles, in order."""
        return cut_tiles([self.tiling.rows], self.tiling.size)

    def create_program(self) -> RowTilesProgram:
        """Create a runnable program."""
        return RowTilesProgram(self)

    def _whole(self, info: TensorInfo) -> TensorInfo:
        """Return the block's form of a tile's port."""
        if info.name not in self.tiling.ports:
            return info
        if len(info.shape) < 2 or info.shape[-2] != self.tiling.size or {*info.shape[:-2]} - {1}:
            raise _another()
        shape = (*info.shape[:-2], self.tiling.rows, info.shape[-1])
        return TensorInfo(info.name, info.element, shape)


def _another() -> DeviceError:
    return DeviceError("a tiled block (NPUW_SPATIAL) has the program of another; compile again")


class RowTilesProgram:
    """One user of a tiled block; satisfies ``protocols.Program``.

    The tile's program is bound to the rows of each tile in turn. For few tokens, a single tile runs
    and stays bound.

    Args:
        loaded: the block.
    """

    def __init__(self, loaded: LoadedRowTiles) -> None:
        self._loaded = loaded
        self._program = loaded.tile.create_program()
        self._infos = {info.name: info for info in loaded.placed}
        self._places: dict[str, Place] = {}
        self._bound: int | None = None
        """First row of the program's current binding; None if it is not bound."""

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output of the block to memory.

        Raises:
            DeviceError: no such tensor exists, or the memory is of another device.
        """
        if name in self._infos:
            self._bound = None  # first: an old binding must not count as the new one
            self._places[name] = memory, offset
        else:
            self._program.bind(name, memory, offset)

    def prepare(self) -> None:
        """Prepare the first tile.

        Raises:
            DeviceError: a tensor is not bound.
        """
        self._check_bound()
        self._move(0)
        self._program.prepare()

    def run(self) -> None:
        """Run the tiles with tokens; set the rows of other tiles to zero, as for padding.

        Raises:
            DeviceError: a tensor is not bound or does not fit, or the device failed.
        """
        self._check_bound()
        used = self._used()
        for tile in self._loaded.tiles():
            if tile.own < used.stop and used.start < tile.end:
                self._move(tile.begin)
                self._program.run()
                self._loaded.runs += 1
            else:
                self._clear(tile)

    def _check_bound(self) -> None:
        unbound = [name for name in self._infos if name not in self._places]
        if unbound:
            raise DeviceError(f"not bound: {', '.join(unbound[:4])}; bind all tensors before a run")

    def _used(self) -> range:
        """Return the rows to compute: all, if the host cannot read the mask or clear outputs."""
        tiling = self._loaded.tiling
        by_host = [MASK, *(info.name for info in self._loaded.outputs)]
        if tiling.mask is None or not all(is_seen(self._places[name][0]) for name in by_host):
            return range(tiling.rows)
        return used_rows(self._values(MASK), tiling.rows)

    def _move(self, begin: int) -> None:
        """Bind the program to the rows that start at ``begin``."""
        if begin == self._bound:
            return
        self._bound = None  # until all ports are bound
        for name in self._loaded.tiling.ports:
            info, (memory, offset) = self._infos[name], self._places[name]
            row = ELEMENT_TYPES[info.element].itemsize * info.shape[-1]
            self._program.bind(name, memory, offset + begin * row)
        self._bound = begin

    def _clear(self, tile: RowTile) -> None:
        """Set rows that are not computed to zero: attention needs finite padding."""
        for info in self._loaded.outputs:
            self._values(info.name)[..., tile.own : tile.end, :] = 0

    def _values(self, name: str) -> Array:
        return view(self._infos[name], *self._places[name])
