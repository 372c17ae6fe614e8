"""A block in tiles of rows as one loaded model, and its programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.host_tensors import Place, view
from npuw_layer.backends.protocols import Array, LoadedModel, Memory, TensorInfo, is_seen
from npuw_layer.errors import DeviceError
from npuw_layer.execution.token_tiles.container import Tiling
from npuw_layer.execution.token_tiles.tokens import used_rows
from npuw_layer.tensors.names import MASK


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile: rows that it has to give, and the row from which on its program computes.

    Only the last one begins to compute earlier than it has to: a program's rows are always as many.
    """

    own: range
    begin: int


class LoadedRowTiles:
    """The program of a tile on a device, as that of the block; satisfies ``protocols.LoadedModel``.

    Args:
        tile: the program.
        tiling: how the block is cut.

    Raises:
        DeviceError: it is the program of another block.
    """

    def __init__(self, tile: LoadedModel, tiling: Tiling) -> None:
        self.tile = tile
        self.tiling = tiling
        self.runs = 0
        """Tiles that were run so far."""
        ports = (*tile.inputs, *tile.outputs)
        names = {info.name for info in ports}
        outputs = {info.name for info in tile.outputs}
        if MASK in names or not outputs <= {*tiling.ports} <= names:
            raise _another()
        self._outputs = [self._whole(info) for info in tile.outputs]
        mask = [tiling.mask.info] if tiling.mask else []
        self._inputs = [*(self._whole(info) for info in tile.inputs), *mask]

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """What the block takes, and the mask of the model that it is a part of."""
        return self._inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """What the block gives: rows, all of them."""
        return self._outputs

    @property
    def members(self) -> Sequence[tuple[str, LoadedModel]]:
        """The tile's program; see ``execution.devices.report``."""
        return [("tile", self.tile)]

    @property
    def placed(self) -> Sequence[TensorInfo]:
        """Inputs and outputs whose place the host must know: rows, and the mask."""
        names = {*self.tiling.ports, MASK}
        return [info for info in (*self._inputs, *self._outputs) if info.name in names]

    def tiles(self) -> Iterator[Tile]:
        """The tiles, in order."""
        rows, size = self.tiling.rows, self.tiling.size
        for begin in range(0, rows, size):
            yield Tile(range(begin, min(begin + size, rows)), min(begin, rows - size))

    def create_program(self) -> RowTilesProgram:
        """Make something to run."""
        return RowTilesProgram(self)

    def _whole(self, info: TensorInfo) -> TensorInfo:
        """A port of the tile as the block has it."""
        if info.name not in self.tiling.ports:
            return info
        if len(info.shape) < 2 or info.shape[-2] != self.tiling.size or {*info.shape[:-2]} - {1}:
            raise _another()
        shape = (*info.shape[:-2], self.tiling.rows, info.shape[-1])
        return TensorInfo(info.name, info.element, shape)


def _another() -> DeviceError:
    return DeviceError(
        "a block in tiles of rows (NPUW_SPATIAL) has the program of another one; compile it anew"
    )


class RowTilesProgram:
    """One user of a block in tiles; satisfies ``protocols.Program``.

    The tile's program is bound to the rows of each tile in turn; where few tokens come again and
    again, one tile runs and stays bound.

    Args:
        loaded: the block.
    """

    def __init__(self, loaded: LoadedRowTiles) -> None:
        self._loaded = loaded
        self._program = loaded.tile.create_program()
        self._infos = {info.name: info for info in loaded.placed}
        self._places: dict[str, Place] = {}
        self._bound: int | None = None
        """The row from which on the program computes now."""

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or output of the block lie in memory.

        Raises:
            DeviceError: there is no such tensor, or it is not this device's memory.
        """
        if name in self._infos:
            self._bound = None  # first: what is bound is never taken for what it was before
            self._places[name] = memory, offset
        else:
            self._program.bind(name, memory, offset)

    def prepare(self) -> None:
        """Get ready to run the first tile.

        Raises:
            DeviceError: a tensor is not bound.
        """
        self._check_bound()
        self._move(0)
        self._program.prepare()

    def run(self) -> None:
        """Run the tiles in which there are tokens; rows of others are zeros, as padding may be.

        Raises:
            DeviceError: a tensor is not bound or does not fit, or the device failed.
        """
        self._check_bound()
        used = self._used()
        for tile in self._loaded.tiles():
            if tile.own.start < used.stop and used.start < tile.own.stop:
                self._move(tile.begin)
                self._program.run()
                self._loaded.runs += 1
            else:
                self._clear(tile.own)

    def _check_bound(self) -> None:
        unbound = [name for name in self._infos if name not in self._places]
        if unbound:
            raise DeviceError(f"not bound: {', '.join(unbound[:4])}")

    def _used(self) -> range:
        """The rows that are to be computed: all, if the host cannot read which, or clear others."""
        tiling = self._loaded.tiling
        by_host = [MASK, *(info.name for info in self._loaded.outputs)]
        if tiling.mask is None or not all(is_seen(self._places[name][0]) for name in by_host):
            return range(tiling.rows)
        return used_rows(self._values(MASK), tiling.rows)

    def _move(self, begin: int) -> None:
        """Bind the program to the rows from one on."""
        if begin == self._bound:
            return
        self._bound = None  # until all of it is bound
        for name in self._loaded.tiling.ports:
            info, (memory, offset) = self._infos[name], self._places[name]
            row = ELEMENT_TYPES[info.element].itemsize * info.shape[-1]
            self._program.bind(name, memory, offset + begin * row)
        self._bound = begin

    def _clear(self, own: range) -> None:
        """Let rows that nobody computes be finite: attention weighs padding by zero."""
        for info in self._loaded.outputs:
            self._values(info.name)[..., own.start : own.stop, :] = 0

    def _values(self, name: str) -> Array:
        return view(self._infos[name], *self._places[name])
