"""An attention in tiles, loaded: it satisfies ``ports.LoadedModel`` and ``ports.Program``."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from npuw_layer.attention.container import TilePrograms
from npuw_layer.attention.masks import Numbers, additive, attended
from npuw_layer.attention.names import (
    CARRIED,
    KEYS,
    KEYS_SCALES,
    LOWEST,
    MASK,
    NOTHING,
    OUTPUT,
    QUERY,
    RESULT,
    VALUES,
    VALUES_SCALES,
)
from npuw_layer.attention.tiles import Tile, cut_tiles
from npuw_layer.errors import DeviceError
from npuw_layer.llm.arena import ELEMENT_TYPES, Arena, nbytes
from npuw_layer.ports import Array, Device, LoadedModel, Memory, Program, TensorInfo


class LoadedFlash:
    """The programs of an attention on a device; satisfies ``ports.LoadedModel``.

    Args:
        device: where they run.
        programs: the tile's, and that of the new rows.
    """

    def __init__(self, device: Device, programs: TilePrograms) -> None:
        self.attention = programs.attention
        self.tiles = cut_tiles(self.attention.shape.past, programs.rows)
        self.tile = device.load(programs.tile)
        self.last = device.load(programs.last)
        self.turn = threading.Lock()
        """Who holds it computes: what lies between tiles is there once."""
        self.runs = 0
        """Tiles that were run so far."""
        self.carried = _Carried(device, self.tile, self.last)

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """What the attention takes."""
        return self.attention.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """What it gives."""
        return self.attention.outputs

    def create_program(self) -> FlashProgram:
        """Make something to run."""
        return FlashProgram(self)


class _Carried:
    """What lies between tiles, twice: a tile reads one and writes the other; and masks."""

    def __init__(self, device: Device, tile: LoadedModel, last: LoadedModel) -> None:
        inputs = {info.name: info for info in tile.inputs}
        carried = [inputs[name] for name in CARRIED]
        self._sides = [Arena(device, carried), Arena(device, carried)]
        self._masks = [
            Arena(device, [info for info in model.inputs if info.name == MASK])
            for model in (tile, last)
        ]

    @property
    def tile_mask(self) -> Array:
        """The mask that the next tile reads."""
        return self._masks[0][MASK]

    @property
    def last_mask(self) -> Array:
        """The mask of the new rows."""
        return self._masks[1][MASK]

    def begin(self) -> None:
        """Nothing is attended to yet."""
        weights, total, highest = (self._sides[0][name] for name in CARRIED)
        weights[...] = 0
        total[...] = 0
        highest[...] = NOTHING

    def bind_tile(self, program: Program, side: int) -> None:
        """Let a tile's program read one side and write the other."""
        self._masks[0].bind(program)
        self._sides[side].bind(program)
        for name, result in zip(CARRIED, RESULT, strict=True):
            place = self._sides[1 - side].tensors[name]
            program.bind(result, place.memory, place.offset)

    def bind_last(self, program: Program, side: int) -> None:
        """Let the last program read one side."""
        self._masks[1].bind(program)
        self._sides[side].bind(program)


class FlashProgram:
    """One user of an attention in tiles; satisfies ``ports.Program``.

    Only tiles run that somebody attends to. Each has a program of its own, bound to its rows in the
    cache; it is made when they are first attended to, as that costs a part of a run.

    Args:
        loaded: the attention.
    """

    def __init__(self, loaded: LoadedFlash) -> None:
        self._loaded = loaded
        self._infos = {info.name: info for info in (*loaded.inputs, *loaded.outputs)}
        self._places: dict[str, tuple[Memory, int]] = {}
        self._tiles: dict[tuple[Tile, int], Program] = {}
        """By the side that they read."""
        self._lasts: dict[int, Program] = {}

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or the output lie in memory.

        Raises:
            DeviceError: there is no such tensor.
        """
        if name not in self._infos:
            raise DeviceError(f"no input or output {name!r}")
        self._places[name] = memory, offset
        self._tiles.clear()
        self._lasts.clear()

    def prepare(self) -> None:
        """Get ready what runs each time; tiles are got ready when they are attended to.

        Raises:
            DeviceError: a tensor is not bound.
        """
        self._last(0).prepare()

    def run(self) -> None:
        """Run the tiles that somebody attends to, and the new rows.

        Raises:
            DeviceError: a tensor is not bound, or the device failed.
        """
        last, loaded = self._last(0), self._loaded
        mask, carried, past = self._mask(), loaded.carried, loaded.attention.shape.past
        with loaded.turn:
            carried.begin()
            side = 0
            for tile in loaded.tiles:
                own = self._part(mask, tile.own, tile.end)
                if attended(own):
                    repeated = tile.own - tile.begin
                    carried.tile_mask[..., :repeated] = LOWEST
                    carried.tile_mask[..., repeated:] = own
                    self._tile(tile, side).run()
                    side = 1 - side
                    loaded.runs += 1
            carried.last_mask[...] = self._part(mask, past, mask.shape[-1])
            (last if side == 0 else self._last(side)).run()

    def _mask(self) -> Array:
        """The mask where it is bound, [heads, group, tokens, positions], 1 where it is alike."""
        shape = self._loaded.attention.shape
        info = self._infos[self._loaded.attention.mask]
        memory, offset = self._places[info.name]
        raw = memory.data[offset : offset + nbytes(info)].view(ELEMENT_TYPES[info.element])
        return raw.reshape((*shape.mask_dims, info.shape[-1]))

    def _part(self, mask: Array, begin: int, end: int) -> Numbers:
        return additive(mask[..., begin:end], self._loaded.attention.shape.mask_element)

    def _tile(self, tile: Tile, side: int) -> Program:
        """The program of a tile that reads one side."""
        if (tile, side) not in self._tiles:
            attention = self._loaded.attention
            program = self._loaded.tile.create_program()
            self._bind(program, QUERY, attention.q)
            for own, scales, rows in (
                (KEYS, KEYS_SCALES, attention.k),
                (VALUES, VALUES_SCALES, attention.v),
            ):
                self._bind(program, own, rows.stored, tile.begin)
                if rows.scales is not None:
                    self._bind(program, scales, rows.scales, tile.begin)
            self._loaded.carried.bind_tile(program, side)
            self._tiles[tile, side] = program
        return self._tiles[tile, side]

    def _last(self, side: int) -> Program:
        """The program of the new rows that reads one side."""
        if side not in self._lasts:
            unbound = [name for name in self._infos if name not in self._places]
            if unbound:
                raise DeviceError(f"not bound: {', '.join(unbound[:4])}")
            attention = self._loaded.attention
            program = self._loaded.last.create_program()
            names: Mapping[str, str] = {
                QUERY: attention.q,
                KEYS: attention.k.new,
                VALUES: attention.v.new,
                OUTPUT: attention.output,
            }
            for own, name in names.items():
                self._bind(program, own, name)
            self._loaded.carried.bind_last(program, side)
            self._lasts[side] = program
        return self._lasts[side]

    def _bind(self, program: Program, own: str, name: str, row: int = 0) -> None:
        """Bind a tensor of a program to one of the attention, from a stored row on."""
        memory, offset = self._places[name]
        bytes_of_row = nbytes(self._infos[name]) // self._infos[name].shape[1] if row else 0
        program.bind(own, memory, offset + row * bytes_of_row)
