"""A tiled block as a container of one tile's program."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.storage.program_set import Bytes, Dim, Entry, ProgramSetKind, Size
from npuw_layer.tensors.names import MASK


class MaskEntry(Entry):
    """The model's mask, which marks the rows that hold tokens."""

    element: str
    columns: Dim

    @property
    def info(self) -> TensorInfo:
        """Port of the mask."""
        return TensorInfo(MASK, self.element, (1, self.columns))


class Tiling(Entry):
    """Tiling of a block.

    Attributes:
        rows: rows of the block.
        size: rows of a tile.
        ports: inputs and outputs that have rows; all others are the same for each tile.
        mask: mask of the rows that hold tokens; without a mask, all tiles run.
    """

    rows: int = Field(ge=1, le=1 << 32)
    size: int = Field(ge=1)
    ports: tuple[str, ...] = Field(min_length=1)
    mask: MaskEntry | None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.size > self.rows:
            raise ValueError(f"tiles of {self.size} rows do not fit a block of {self.rows}")
        mask = self.mask
        if mask and (mask.element not in ELEMENT_TYPES or mask.columns < self.rows):
            raise ValueError(f"mask {mask.columns} {mask.element} does not fit {self.rows} rows")
        return self


class _Header(Entry):
    tiling: Tiling
    size: Size
    """Bytes of the program."""


KIND = ProgramSetKind(b"NPUWROW1", _Header, "a tiled block (NPUW_SPATIAL)")


def write_container(tiling: Tiling, program: Bytes) -> bytes:
    """Return a block's tiling and the program of a tile as bytes."""
    return KIND.write(_Header(tiling=tiling, size=len(program)), [program])


def read_container(content: Bytes) -> tuple[Tiling, Bytes]:
    """Read a block's tiling and the program of a tile, which stays in place.

    Raises:
        DeviceError: the bytes are another format, or damaged.
    """
    opened = KIND.open(content)
    (program,) = opened.blobs([opened.header.size])
    opened.finish()
    return opened.header.tiling, program
