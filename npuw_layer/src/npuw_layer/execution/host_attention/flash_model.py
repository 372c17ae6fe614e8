"""A tiled attention, loaded as one model, and its programs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npuw_layer.backends.arena import ELEMENT_TYPES, nbytes
from npuw_layer.backends.host_tensors import HostTensors, Place, view
from npuw_layer.backends.protocols import Array, Device, LoadedModel, Memory, Program, TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.host_attention.container import TilePrograms
from npuw_layer.execution.host_attention.masks import Numbers, additive, attended
from npuw_layer.execution.host_attention.shapes import AttentionShape
from npuw_layer.execution.host_attention.tile_ports import (
    KEYS,
    LOWEST,
    QUERY,
    STORED,
    VALUES,
    last_inputs,
    last_outputs,
    tile_inputs,
    tile_outputs,
)
from npuw_layer.execution.host_attention.workspace import Workspace
from npuw_layer.execution.row_tiles import RowTile, cut_tiles


class LoadedFlash:
    """The programs of an attention on a device; satisfies ``protocols.LoadedModel``.

    Args:
        device: the programs' device.
        programs: the program of a tile, and that of the new rows.

    Raises:
        DeviceError: the device rejects the programs, or has no memory left; or it gets those of
            another attention.
    """

    def __init__(self, device: Device, programs: TilePrograms) -> None:
        self.attention = programs.attention
        self.tiles = [*cut_tiles(self.attention.parts, programs.rows)]
        self._length = programs.rows
        shape = self.attention.shape
        self._tile, last = device.load(programs.tile), device.load(programs.last)
        self.members = [("tile", self._tile), ("last", last)]
        """Loaded programs, by tag; see ``execution.devices.report``."""
        _check(self._tile, tile_inputs(shape, programs.rows), tile_outputs(shape))
        _check(last, last_inputs(shape), last_outputs(shape))
        self._own_stored = STORED if shape.scaled else (KEYS, VALUES)
        """Names of a tile's ports for the inputs ``CachedAttention.stored``."""
        self._copies = _copies(shape)
        copies = self._copies or min(self.attention.parts) < programs.rows
        self.workspace = Workspace(device, self._tile, last, copies)
        self.inputs: Sequence[TensorInfo] = self.attention.inputs
        self.outputs: Sequence[TensorInfo] = self.attention.outputs
        self._infos = {info.name: info for info in self.inputs}
        self.turn = threading.Lock()
        """Lock to hold while the shared workspace is in use."""
        self.runs = 0
        """Tiles run so far."""
        self._bound: weakref.WeakValueDictionary[object, BoundTile] = weakref.WeakValueDictionary()

    def create_program(self) -> FlashProgram:
        """Create a runnable program."""
        return FlashProgram(self)

    def tile_program(self, number: int, places: Mapping[str, Place], known: KnownTiles) -> Program:
        """Return the program of a tile, ready to read its rows.

        Args:
            number: the tile's number.
            places: locations of the cache's parts, by ``CachedAttention.stored``.
            known: bound tiles of this cache, by number; new ones are added.
        """
        tile = self.tiles[number]
        stored = [(names[tile.part], places[names[tile.part]]) for names in self.attention.by_kind]
        if self._copies or self.attention.parts[tile.part] < self._length:
            return self.workspace.take_rows(self._rows(tile, stored), number)
        if number not in known:
            known[number] = self._bound_tile(number, stored)
        return known[number].program

    def _rows(self, tile: RowTile, stored: Sequence[tuple[str, Place]]) -> Mapping[str, Array]:
        """Return views of a tile's rows, in place."""
        return {
            own: view(self._infos[name], *place)[:, tile.begin : tile.begin + self._length]
            for own, (name, place) in zip(self._own_stored, stored, strict=True)
        }

    def _bound_tile(self, number: int, stored: Sequence[tuple[str, Place]]) -> BoundTile:
        """Return the program of a tile, bound to its rows; users of one cache share it."""
        key = (number, *((id(memory), offset) for _, (memory, offset) in stored))
        bound = self._bound.get(key)
        if bound is None:
            tile = self.tiles[number]
            program = self._tile.create_program()
            self.workspace.bind_tile(program, number)
            for own, (name, (memory, offset)) in zip(self._own_stored, stored, strict=True):
                bytes_of_row = nbytes(self._infos[name]) // self.attention.parts[tile.part]
                program.bind(own, memory, offset + tile.begin * bytes_of_row)
            bound = BoundTile(program, tuple(memory for _, (memory, _) in stored))
            self._bound[key] = bound
        return bound


def _check(
    loaded: LoadedModel, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
) -> None:
    """Check a program's inputs and outputs: a container may hold any program."""
    if {*loaded.inputs} != {*inputs} or {*loaded.outputs} != {*outputs}:
        raise DeviceError("a tiled attention (HFA) has the program of another one; compile again")


def _copies(shape: AttentionShape) -> bool:
    """Return whether rows are copied for one shared program, instead of a program for each tile.

    Each program has its own memory for intermediate values, mostly scores. The scores of a prompt's
    chunk are far larger than the rows, those of a token smaller.
    """
    scores = 4 * shape.group * shape.tokens  # bytes for each row of a head
    return scores > ELEMENT_TYPES[shape.stored_element].itemsize * (shape.width + shape.value_width)


@dataclass(frozen=True, weakref_slot=True, slots=True)
class BoundTile:
    """The program of a tile, and the bound memory, kept alive while the memory's id is a key."""

    program: Program
    memory: tuple[Memory, ...]


KnownTiles = dict[int, BoundTile]
"""Bound tiles, by number."""


class FlashProgram:
    """One user of a tiled attention; satisfies ``protocols.Program``.

    Only visible tiles run. A program bound to rows in the cache is created when its rows first
    become visible, as creating it takes a part of a run's time.

    Args:
        loaded: the attention.
    """

    def __init__(self, loaded: LoadedFlash) -> None:
        self._loaded = loaded
        self._tensors = HostTensors((*loaded.inputs, *loaded.outputs))
        self._tiles: KnownTiles = {}

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or the output to memory.

        Raises:
            DeviceError: no such tensor exists, or it does not fit.
        """
        part = self._loaded.attention.stored.get(name)
        if part is not None:  # first: no tile must keep the old binding
            tiles = self._loaded.tiles
            self._tiles = {n: one for n, one in self._tiles.items() if tiles[n].part != part}
        self._tensors.bind(name, memory, offset)

    def prepare(self) -> None:
        """Prepare the programs that every run needs; tiles are prepared when they become visible.

        Raises:
            DeviceError: a tensor is not bound.
        """
        self._tensors.check_bound()
        with self._loaded.turn:
            self._loaded.workspace.prepare()

    def run(self) -> None:
        """Run the visible tiles, and the new rows.

        Raises:
            DeviceError: a tensor is not bound, or the device failed.
        """
        self.prepare()
        loaded, attention = self._loaded, self._loaded.attention
        work, past = loaded.workspace, attention.shape.past
        new = {QUERY: attention.q, KEYS: attention.k.new, VALUES: attention.v.new}
        tensors = self._tensors
        places = {name: tensors.place(name) for name in attention.stored}
        mask = tensors[attention.mask]
        mask = mask.reshape((*attention.shape.mask_dims, mask.shape[-1]))
        with loaded.turn:
            work.begin({own: tensors[name] for own, name in new.items()})
            for number, tile in enumerate(loaded.tiles):
                own = self._numbers(mask[..., tile.own : tile.end])
                if attended(own):
                    begin = tile.own - tile.first
                    work.tile_mask[...] = LOWEST
                    work.tile_mask[..., begin : begin + own.shape[-1]] = own
                    work.run_tile(loaded.tile_program(number, places, self._tiles), number)
                    loaded.runs += 1
            work.last_mask[...] = self._numbers(mask[..., past:])
            tensors[attention.output][...] = work.finish()

    def _numbers(self, mask: Array) -> Numbers:
        return additive(mask, self._loaded.attention.shape.mask_element)
