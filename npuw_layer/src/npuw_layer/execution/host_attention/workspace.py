"""Shared bindings of the programs of a tiled attention, except stored rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import Array, Device, LoadedModel, Program
from npuw_layer.execution.host_attention.tile_ports import (
    CARRIED,
    KEYS,
    MASK,
    NOTHING,
    OUTPUT,
    QUERY,
    RESULT,
    STORED,
    VALUES,
)


class Workspace:
    """Query, new rows, result, carried values and masks of the attention being computed.

    The host copies query, new rows and result in and out. This costs less than programs bound to
    each of their locations, and so layers share programs. Carried values exist twice, as a tile
    reads one side and writes the other.

    Args:
        device: device that owns the memory.
        tile: the program of a tile.
        last: the program of the new rows.
        copies: whether stored rows are copied here too, one tile's rows at a time.
    """

    def __init__(self, device: Device, tile: LoadedModel, last: LoadedModel, copies: bool) -> None:
        self._tile = tile
        self._last = last
        self._rows = Arena(device, [info for info in tile.inputs if copies and info.name in STORED])
        inputs = {info.name: info for info in last.inputs}
        carried = [inputs[name] for name in CARRIED]
        self._sides = (Arena(device, carried), Arena(device, carried))
        self._query = Arena(device, [inputs[QUERY]])
        self._new = Arena(device, [inputs[name] for name in (KEYS, VALUES, MASK)])
        self._output = Arena(device, last.outputs)
        self._tile_mask = Arena(device, [info for info in tile.inputs if info.name == MASK])
        self._side = 0
        self.tile_mask = self._tile_mask[MASK]
        """Mask of the next tile."""
        self.last_mask = self._new[MASK]
        """Mask of the new rows."""

    def begin(self, tensors: Mapping[str, Array]) -> None:
        """Copy query and new rows, and reset the carried values."""
        self._query[QUERY][...] = tensors[QUERY]
        for name in (KEYS, VALUES):
            self._new[name][...] = tensors[name]
        self._side = 0
        weights, total, highest = (self._sides[0][name] for name in CARRIED)
        weights[...] = 0
        total[...] = 0
        highest[...] = NOTHING

    def bind_tile(self, program: Program, number: int) -> None:
        """Bind the program of a tile, except its rows; the tiles' sides alternate."""
        self._query.bind(program)
        self._tile_mask.bind(program)
        reads, writes = self._sides[number % 2], self._sides[1 - number % 2]
        reads.bind(program)
        for name, result in zip(CARRIED, RESULT, strict=True):
            place = writes.tensors[name]
            program.bind(result, place.memory, place.offset)

    def take_rows(self, rows: Mapping[str, Array], number: int) -> Program:
        """Copy a tile's rows, and return the program that reads the copies.

        In a tile with fewer rows, old rows remain behind the new ones; the mask hides them.
        """
        for name, values in rows.items():
            self._rows[name][:, : values.shape[1]] = values
        return self._tiles[number % 2]

    def run_tile(self, program: Program, number: int) -> None:
        """Run the program of a tile.

        Raises:
            DeviceError: the device failed.
        """
        if self._side != number % 2:  # a tile was skipped
            for name in CARRIED:
                self._sides[1 - self._side][name][...] = self._sides[self._side][name]
        program.run()
        self._side = 1 - number % 2

    def finish(self) -> Array:
        """Run the program of the new rows; return the result, which the next run overwrites.

        Raises:
            DeviceError: the device failed.
        """
        self._lasts[self._side].run()
        return self._output[OUTPUT]

    def prepare(self) -> None:
        """Do the remaining preparations of the first ``finish``."""
        for program in self._lasts:
            program.prepare()

    @cached_property
    def _tiles(self) -> tuple[Program, Program]:
        """Programs of copied rows, by the side that they read."""
        programs = (self._tile.create_program(), self._tile.create_program())
        for side, program in enumerate(programs):
            self._rows.bind(program)
            self.bind_tile(program, side)
        return programs

    @cached_property
    def _lasts(self) -> tuple[Program, Program]:
        """Programs of the new rows, by the side that they read."""
        programs = (self._last.create_program(), self._last.create_program())
        for program, side in zip(programs, self._sides, strict=True):
            for arena in (self._query, self._new, self._output, side):
                arena.bind(program)
        return programs
