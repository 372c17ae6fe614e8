"""Cuts the work of every hardware op into blocks that fit CMX, and shares them among tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from compiler_layer.dialects import npu
from compiler_layer.dialects.npu.dpu import part_rows
from compiler_layer.dialects.ov.op import int_attr, int_value, ints_attr
from compiler_layer.dialects.ov.types import FOUR_BIT, NUMPY, Shape, element_of, shape_of
from compiler_layer.errors import CompilerUsageError, DoesNotFit
from compiler_layer.model import Model
from driver_layer.abi.platforms import DEFAULT_PLATFORM, PLATFORMS
from driver_layer.abi.tasks import DPU_MAX_DIM

_STEP_SHARE = 0.45
"""How much of CMX one step may fill: what the next one loads must lie beside it."""

_TILE_MACS = 1 << 18
_TILE_ELEMENTS = 1 << 14
"""Work below which another tile would be idle most of the time."""

_GRAIN = 16
"""Columns of a product are cut at multiples of this (channel alignment of the DPU)."""

_MAX_ROWS = 256
_MAX_COLUMNS = 1024


def _round_up(value: int, grain: int) -> int:
    return -(-value // grain) * grain


def _itemsize(value: SSAValue) -> int:
    return NUMPY[element_of(value)].itemsize


def _width(value: SSAValue) -> float:
    """Bytes of an element; half a byte of one of four bits."""
    return 0.5 if element_of(value) in FOUR_BIT else _itemsize(value)


def _channels(wanted: int, most: int, grain: int) -> int:
    """A number of channels below ``most`` in whole grains, at least one; or all of them."""
    return most if wanted >= most else max(grain, wanted // grain * grain)


def _product_bytes(op: npu.MatMul, m: int, n: int, k: int) -> int:
    """CMX that one block of a product fills, its tables of scales included."""
    groups = -(-k // op.group)
    tables = sum(
        n * min(groups, shape_of(table)[-1]) * _itemsize(table)
        for table in (op.scales, op.zeros)
        if table is not None
    )
    return int(m * k * _width(op.a) + n * k * _width(op.b)) + m * n * _itemsize(op.output) + tables


@dataclass(frozen=True)
class Tile(ModulePass):
    """Cuts the work of every hardware op into blocks that fit CMX, and shares them among tiles.

    Before:  %y = npu.matmul(%x, %w)                              [1, 1024, 256] x [704, 256]
    After:   %y = npu.matmul(%x, %w) {tile = [256, 704, 256], tiles = 4, split = "m"}

    A product with many rows is shared by rows, weights going to all tiles at once; one with few by
    columns, the rows going to all. Blocks are halved along their larger side until the operands of
    one step fill less than half of CMX.

    Args:
        platform: the device's generation.
        tiles: how many NCE tiles to use; 0 means four, or all if there are fewer.
    Source: LATENCY hint uses 4 of 5 or 6 tiles (fact sheet simulators_npu §c).

    Raises:
        CompilerUsageError: the platform is unknown, or has no so many tiles.
        DoesNotFit: one row of an op is too wide for CMX.
    """

    name = "tile"
    platform: str = DEFAULT_PLATFORM
    tiles: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Annotate the module in place."""
        del ctx
        self.used_tiles()
        for each in Model(op).body.ops:
            match each:
                case npu.MatMul():
                    self._matmul(each)
                case npu.Attention():
                    self._attention(each)
                case npu.Kernel():
                    self._kernel(each)
                case _:
                    pass

    def used_tiles(self) -> int:
        """How many tiles the program uses."""
        if self.platform not in PLATFORMS:
            raise CompilerUsageError(
                f"platform {self.platform!r}; there are {', '.join(PLATFORMS)}"
            )
        available = PLATFORMS[self.platform].tiles
        if not 0 <= self.tiles <= available:
            raise CompilerUsageError(
                f"{self.tiles} tiles; platform {self.platform} has {available}"
            )
        return self.tiles or min(4, available)

    @property
    def _budget(self) -> int:
        return int(PLATFORMS[self.platform].workspace_bytes * _STEP_SHARE)

    def _matmul(self, op: npu.MatMul) -> None:
        a, out = shape_of(op.a), shape_of(op.output)
        k = a[-2] if int_value(op.transpose_a) else a[-1]
        shared = len(shape_of(op.b)) == 2
        m = math.prod(out[:-1]) if shared else out[-2]
        n = out[-1]
        tiles = max(1, min(self.used_tiles(), m * n * k // _TILE_MACS))
        by_rows = m >= 4 * tiles
        share_m = -(-m // tiles) if by_rows else m
        share_n = n if by_rows else _round_up(-(-n // tiles), _GRAIN)
        block = self._block(op, (min(share_m, _MAX_ROWS), min(share_n, _MAX_COLUMNS, n), k))
        op.properties["tile"] = ints_attr(block)
        op.properties["tiles"] = int_attr(tiles)
        op.properties["split"] = StringAttr("m" if by_rows else "n")

    def _block(self, op: npu.MatMul, block: tuple[int, int, int]) -> Sequence[int]:
        m, n, k = block
        # Blocks of channels hold whole groups.
        grain = max(_GRAIN, op.group) if op.scales is not None else _GRAIN
        k = _channels(min(k, DPU_MAX_DIM), k, grain)
        while _product_bytes(op, m, n, k) > self._budget:
            if n * _width(op.b) >= m * _width(op.a) and n > _GRAIN:
                n = _round_up(n // 2, _GRAIN)
            elif m > 1:
                m = -(-m // 2)
            elif k > grain:
                k = _channels(-(-k // 2), k, grain)
            else:
                need = _product_bytes(op, m, n, k)
                raise DoesNotFit(f"{op.name} of {k} channels", need, self._budget)
        return m, n, k

    def _attention(self, op: npu.Attention) -> None:
        _, heads, m, width = shape_of(op.q)
        key_heads = shape_of(op.k[0])[1]
        length = sum(part_rows(op.k))
        group = heads // key_heads
        rows, keys = m, min(length, DPU_MAX_DIM)
        size = _itemsize(op.q)
        mask = _itemsize(op.mask) if op.mask is not None else 0

        def need() -> int:
            scores = group * rows * length * (4 + size)
            return (
                scores + rows * length * mask + keys * width * size + 3 * group * rows * width * 4
            )

        while need() > self._budget or group * rows > DPU_MAX_DIM:
            if rows > 1:
                rows = -(-rows // 2)
            elif keys > _GRAIN:
                keys = -(-keys // 2)
            else:
                raise DoesNotFit(f"attention over {length} positions", need(), self._budget)
        work = heads * m * length * width
        op.properties["tile"] = ints_attr((rows, keys))
        op.properties["tiles"] = int_attr(max(1, min(self.used_tiles(), work // _TILE_MACS)))

    def _kernel(self, op: npu.Kernel) -> None:
        domain = op.domain
        tiles = max(1, min(self.used_tiles(), math.prod(domain) // _TILE_ELEMENTS))
        block = list(domain)
        while not self._kernel_fits(op, block) or _blocks(domain, block) < tiles:
            axis = next((i for i, d in enumerate(block[:-1]) if d > 1), None)
            if axis is None:
                if self._kernel_fits(op, block):
                    break
                raise DoesNotFit(f"a kernel with rows of {domain[-1]}", 0, self._budget)
            block[axis] = -(-block[axis] // 2)
        op.properties["tile"] = ints_attr(block)
        op.properties["tiles"] = int_attr(tiles)

    def _kernel_fits(self, op: npu.Kernel, block: Sequence[int]) -> bool:
        values = [*op.inputs, *op.outputs]
        return sum(_block_bytes(value, block) for value in values) <= self._budget


def _block_bytes(value: SSAValue, block: Sequence[int]) -> int:
    shape = (1,) * (len(block) - len(shape_of(value))) + shape_of(value)
    dims = (1 if d == 1 else size for d, size in zip(shape, block, strict=True))
    return math.prod(dims) * _itemsize(value)


def _blocks(domain: Shape, block: Sequence[int]) -> int:
    return math.prod(-(-d // size) for d, size in zip(domain, block, strict=True))
