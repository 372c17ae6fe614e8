"""An attention in tiles, loaded: it satisfies ``ports.LoadedModel`` and ``ports.Program``."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npuw_layer.attention.container import TilePrograms
from npuw_layer.attention.masks import Numbers, additive, attended
from npuw_layer.attention.names import KEYS, LOWEST, QUERY, STORED, VALUES
from npuw_layer.attention.shapes import AttentionShape
from npuw_layer.attention.tile_ports import (
    last_inputs,
    last_outputs,
    tile_inputs,
    tile_outputs,
)
from npuw_layer.attention.tiles import cut_tiles
from npuw_layer.attention.workspace import Workspace
from npuw_layer.errors import DeviceError
from npuw_layer.host_tensors import HostTensors, Place, view
from npuw_layer.llm.arena import ELEMENT_TYPES, nbytes
from npuw_layer.ports import Array, Device, LoadedModel, Memory, Program, TensorInfo


class LoadedFlash:
    """The programs of an attention on a device; satisfies ``ports.LoadedModel``.

    Args:
        device: where they run.
        programs: the tile's, and that of the new rows.

    Raises:
        DeviceError: the device does not take them, or has no memory left; or they are those of
            another attention.
    """

    def __init__(self, device: Device, programs: TilePrograms) -> None:
        self.attention = programs.attention
        self.tiles = cut_tiles(self.attention.shape.past, programs.rows)
        self._length = programs.rows
        shape = self.attention.shape
        self._tile, last = device.load(programs.tile), device.load(programs.last)
        self.members = [("tile", self._tile), ("last", last)]
        """What runs; see ``devices.report``."""
        _check(self._tile, tile_inputs(shape, programs.rows), tile_outputs(shape))
        _check(last, last_inputs(shape), last_outputs(shape))
        self._copies = _copies(shape)
        self.workspace = Workspace(device, self._tile, last, self._copies)
        self.turn = threading.Lock()
        """Who holds it computes."""
        self.runs = 0
        """Tiles that were run so far."""
        self._bound: weakref.WeakValueDictionary[object, BoundTile] = weakref.WeakValueDictionary()

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

    def tile_program(self, number: int, stored: Sequence[Place], known: KnownTiles) -> Program:
        """Give the program of a tile, ready to read its rows.

        Args:
            number: of the tile.
            stored: where the cache begins, for each of ``CachedAttention.stored``.
            known: the tiles that were asked for before, with this cache.
        """
        if self._copies:
            return self.workspace.take_rows(self._rows(number, stored), number)
        if number not in known:
            known[number] = self._bound_tile(number, stored)
        return known[number].program

    def _rows(self, number: int, stored: Sequence[Place]) -> Mapping[str, Array]:
        """The rows of a tile where they lie."""
        tile = self.tiles[number]
        infos = {info.name: info for info in self.inputs}
        places = zip(self._own_stored, self.attention.stored, stored, strict=True)
        return {
            own: view(infos[name], *place)[:, tile.begin : tile.begin + self._length]
            for own, name, place in places
        }

    def _bound_tile(self, number: int, stored: Sequence[Place]) -> BoundTile:
        """The program of a tile, bound to its rows; those that use the same cache share it."""
        key = (number, *((id(memory), offset) for memory, offset in stored))
        bound = self._bound.get(key)
        if bound is None:
            program = self._tile.create_program()
            self.workspace.bind_tile(program, number)
            infos = {info.name: info for info in self.inputs}
            places = zip(self._own_stored, self.attention.stored, stored, strict=True)
            for own, name, (memory, offset) in places:
                bytes_of_row = nbytes(infos[name]) // self.attention.shape.past
                program.bind(own, memory, offset + self.tiles[number].begin * bytes_of_row)
            bound = BoundTile(program, tuple(memory for memory, _ in stored))
            self._bound[key] = bound
        return bound

    @property
    def _own_stored(self) -> Sequence[str]:
        """What a tile calls ``CachedAttention.stored``."""
        return STORED if self.attention.shape.scaled else (KEYS, VALUES)


def _check(
    loaded: LoadedModel, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
) -> None:
    """See that a program takes and gives what it should: a container may hold any."""
    if {*loaded.inputs} != {*inputs} or {*loaded.outputs} != {*outputs}:
        raise DeviceError(
            "an attention in tiles (HFA) has the program of another one; compile it anew"
        )


def _copies(shape: AttentionShape) -> bool:
    """Whether a tile's rows are copied for its program, or there is a program for each tile.

    Each program has memory of its own for what it computes, most of which are scores. Those of a
    prompt's chunk are far larger than the rows, those of a token smaller.
    """
    scores = 4 * shape.group * shape.tokens  # bytes for each row of a head
    return scores > ELEMENT_TYPES[shape.element].itemsize * (shape.width + shape.value_width)


@dataclass(frozen=True, weakref_slot=True, slots=True)
class BoundTile:
    """The program of a tile, and the memory that it is known by."""

    program: Program
    memory: tuple[Memory, ...]


KnownTiles = dict[int, BoundTile]
"""By number."""


class FlashProgram:
    """One user of an attention in tiles; satisfies ``ports.Program``.

    Only tiles run that somebody attends to. A program that is bound to rows in the cache is made
    when they are first attended to, as that costs a part of a run.

    Args:
        loaded: the attention.
    """

    def __init__(self, loaded: LoadedFlash) -> None:
        self._loaded = loaded
        self._tensors = HostTensors((*loaded.inputs, *loaded.outputs))
        self._tiles: KnownTiles = {}

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or the output lie in memory.

        Raises:
            DeviceError: there is no such tensor, or it does not fit.
        """
        self._tensors.bind(name, memory, offset)
        if name in self._loaded.attention.stored:
            self._tiles.clear()

    def prepare(self) -> None:
        """Get ready what runs each time; tiles are got ready when they are attended to.

        Raises:
            DeviceError: a tensor is not bound.
        """
        self._tensors.check_bound()
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
        tensors = self._tensors
        stored = [tensors.places[name] for name in attention.stored]
        mask = tensors[attention.mask]
        mask = mask.reshape((*attention.shape.mask_dims, mask.shape[-1]))
        with loaded.turn:
            work.begin({own: tensors[name] for own, name in new.items()})
            for number, tile in enumerate(loaded.tiles):
                own = self._numbers(mask[..., tile.own : tile.end])
                if attended(own):
                    repeated = tile.own - tile.begin
                    work.tile_mask[..., :repeated] = LOWEST
                    work.tile_mask[..., repeated:] = own
                    work.run_tile(loaded.tile_program(number, stored, self._tiles), number)
                    loaded.runs += 1
            work.last_mask[...] = self._numbers(mask[..., past:])
            tensors[attention.output][...] = work.finish()

    def _numbers(self, mask: Array) -> Numbers:
        return additive(mask, self._loaded.attention.shape.mask_element)
