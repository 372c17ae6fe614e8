"""An attention in tiles, loaded: it satisfies ``ports.LoadedModel`` and ``ports.Program``."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from npuw_layer.attention.container import TilePrograms
from npuw_layer.attention.masks import Numbers, additive, attended
from npuw_layer.attention.names import (
    KEYS,
    KEYS_SCALES,
    LOWEST,
    QUERY,
    VALUES,
    VALUES_SCALES,
)
from npuw_layer.attention.tiles import cut_tiles
from npuw_layer.attention.workspace import Workspace
from npuw_layer.errors import DeviceError
from npuw_layer.llm.arena import ELEMENT_TYPES, nbytes
from npuw_layer.ports import Array, Device, Memory, Program, TensorInfo

Place = tuple[Memory, int]
"""A memory and an offset."""


class LoadedFlash:
    """The programs of an attention on a device; satisfies ``ports.LoadedModel``.

    Args:
        device: where they run.
        programs: the tile's, and that of the new rows.

    Raises:
        DeviceError: the device does not take them, or has no memory left.
    """

    def __init__(self, device: Device, programs: TilePrograms) -> None:
        self.attention = programs.attention
        self.tiles = cut_tiles(self.attention.shape.past, programs.rows)
        self._tile = device.load(programs.tile)
        self.workspace = Workspace(device, self._tile, device.load(programs.last))
        self.turn = threading.Lock()
        """Who holds it computes."""
        self.runs = 0
        """Tiles that were run so far."""
        self._bound: weakref.WeakValueDictionary[object, _BoundTile] = weakref.WeakValueDictionary()

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

    def bound_tile(self, number: int, stored: Sequence[Place]) -> _BoundTile:
        """The program of a tile, bound to its rows; those that use the same cache share it.

        Args:
            number: of the tile.
            stored: where the cache begins, for each of ``CachedAttention.stored``.
        """
        key = (number, *((id(memory), offset) for memory, offset in stored))
        bound = self._bound.get(key)
        if bound is None:
            program = self._tile.create_program()
            self.workspace.bind_tile(program, number)
            infos = {info.name: info for info in self.inputs}
            own = (KEYS, KEYS_SCALES, VALUES, VALUES_SCALES)
            own = own if self.attention.shape.scaled else (KEYS, VALUES)
            places = zip(own, self.attention.stored, stored, strict=True)
            for name, its, (memory, offset) in places:
                bytes_of_row = nbytes(infos[its]) // self.attention.shape.past
                program.bind(name, memory, offset + self.tiles[number].begin * bytes_of_row)
            bound = _BoundTile(program, tuple(memory for memory, _ in stored))
            self._bound[key] = bound
        return bound


@dataclass(frozen=True, weakref_slot=True, slots=True)
class _BoundTile:
    """The program of a tile, and the memory that it is known by."""

    program: Program
    memory: tuple[Memory, ...]


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
        self._places: dict[str, Place] = {}
        self._tiles: dict[int, _BoundTile] = {}

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or the output lie in memory.

        Raises:
            DeviceError: there is no such tensor, or it does not fit.
        """
        info = self._infos.get(name)
        if info is None:
            raise DeviceError(f"no input or output {name!r}")
        if offset + nbytes(info) > memory.data.size:
            raise DeviceError(f"{name!r} ends behind its memory of {memory.data.size} bytes")
        self._places[name] = memory, offset
        if name in self._loaded.attention.stored:
            self._tiles.clear()

    def prepare(self) -> None:
        """Get ready what runs each time; tiles are got ready when they are attended to.

        Raises:
            DeviceError: a tensor is not bound.
        """
        unbound = [name for name in self._infos if name not in self._places]
        if unbound:
            raise DeviceError(f"not bound: {', '.join(unbound[:4])}")
        with self._loaded.turn:
            self._loaded.workspace.prepare()

    def run(self) -> None:
        """Run the tiles that somebody attends to, and the new rows.

        Raises:
            DeviceError: a tensor is not bound, or the device failed.
        """
        self.prepare()
        loaded, attention = self._loaded, self._loaded.attention
        work, past = loaded.workspace, attention.shape.past
        new = {QUERY: attention.q, KEYS: attention.k.new, VALUES: attention.v.new}
        mask = self._tensor(attention.mask)
        mask = mask.reshape((*attention.shape.mask_dims, mask.shape[-1]))
        with loaded.turn:
            work.begin({own: self._tensor(name) for own, name in new.items()})
            for number, tile in enumerate(loaded.tiles):
                own = self._numbers(mask[..., tile.own : tile.end])
                if attended(own):
                    repeated = tile.own - tile.begin
                    work.tile_mask[..., :repeated] = LOWEST
                    work.tile_mask[..., repeated:] = own
                    work.run_tile(self._tile(number), number)
                    loaded.runs += 1
            work.last_mask[...] = self._numbers(mask[..., past:])
            self._tensor(attention.output)[...] = work.finish()

    def _tensor(self, name: str) -> Array:
        """The values of an input or of the output."""
        info, (memory, offset) = self._infos[name], self._places[name]
        raw = memory.data[offset : offset + nbytes(info)]
        return raw.view(ELEMENT_TYPES[info.element]).reshape(info.shape)

    def _numbers(self, mask: Array) -> Numbers:
        return additive(mask, self._loaded.attention.shape.mask_element)

    def _tile(self, number: int) -> Program:
        """The program of a tile."""
        if number not in self._tiles:
            stored = [self._places[name] for name in self._loaded.attention.stored]
            self._tiles[number] = self._loaded.bound_tile(number, stored)
        return self._tiles[number].program
