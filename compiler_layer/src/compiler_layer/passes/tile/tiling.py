"""Tiling of hardware ops into blocks that fit CMX, and their distribution among tiles."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from compiler_layer.codegen import kernel_program
from compiler_layer.codegen.rows import ROWS
from compiler_layer.dialects import npu
from compiler_layer.dialects.npu.dpu import part_rows
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.op import OvOp, int_attr, int_value, ints_attr
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import NUMPY
from compiler_layer.errors import CompilerUsageError, DoesNotFit
from compiler_layer.model import Model
from compiler_layer.passes.tile.attention import (
    AttentionProblem,
    choose_attention,
    price_attention,
)
from compiler_layer.passes.tile.kernel import (
    KernelChoice,
    KernelProblem,
    Operand,
    choose_kernel,
    price_kernel,
)
from compiler_layer.passes.tile.machine import Machine, Price
from compiler_layer.passes.tile.matmul import MatMulProblem, choose_matmul, price_matmul
from compiler_layer.rewriting.graph_pass import GraphPass
from driver_layer.abi.platforms import DEFAULT_PLATFORM, Platform, platform_of
from driver_layer.errors import PlatformError


@dataclass(frozen=True)
class Tile(GraphPass):
    """Cut the work of every hardware op into blocks that fit CMX, and distribute them among tiles.

    Before:  %y = npu.matmul(%x, %w)                              [1, 1024, 256] x [704, 256]
    After:   %y = npu.matmul(%x, %w) {tile = [256, 704, 256], tiles = 4, split = "m"}

    The cost model selects the cheapest way to cut an op. A matmul is split over its height ("m":
    rows are split, weights are broadcast to all tiles) or over its kernel ("n": output channels are
    split, rows are broadcast). Attention has ``tile = [rows, keys, positions]``: with fewer
    positions than keys exist, its softmax is online, block of keys by block of keys. Kernels keep
    complete rows; a row that does not fit is cut, too, unless an op needs the complete row.

    Args:
        platform: the device's generation, or the path of a platform file (.toml), or a platform.
        tiles: maximum number of NCE tiles; 0 means four, or all if the device has fewer.
    Source: LATENCY hint uses 4 of 5 or 6 tiles (docs/reference/npu.md#tiles-in-use).

    Raises:
        CompilerUsageError: the platform is unknown, or has fewer tiles.
        DoesNotFit: one row of an op is too wide for CMX, and must not be cut.
    """

    name = "tile"
    platform: str | Platform = DEFAULT_PLATFORM
    tiles: int = 0

    def _rewrite(self, model: Model) -> None:
        tiles = self.used_tiles()
        machine = Machine(self.device(), tiles)
        for each in model.body.ops:
            match each:
                case npu.MatMul():
                    _tile_matmul(each, machine)
                case npu.Attention():
                    _tile_attention(each, machine)
                case npu.Kernel():
                    _tile_kernel(each, machine)
                case _:
                    pass

    def used_tiles(self) -> int:
        """Return the number of tiles that the program uses."""
        device = self.device()
        available = device.tiles
        if not 0 <= self.tiles <= available:
            raise CompilerUsageError(
                f"tiles={self.tiles}: platform {device.name} has {available} tiles; lower it"
            )
        return self.tiles or min(4, available)

    def device(self) -> Platform:
        """Return the platform's numbers."""
        if isinstance(self.platform, Platform):
            return self.platform
        try:
            return platform_of(self.platform)
        except PlatformError as error:
            raise CompilerUsageError(str(error)) from None


def price_of(op: Operation, machine: Machine) -> Price | None:
    """Return the price of a hardware op with this pass's blocks; None for ops that are not tiled.

    Raises:
        DoesNotFit: one row is too wide for CMX, and must not be cut.
    """
    match op:
        case npu.MatMul():
            product = _product(op)
            return price_matmul(product, choose_matmul(product, machine), machine)
        case npu.Attention():
            attention = _attention(op)
            return price_attention(attention, choose_attention(attention, machine), machine)
        case npu.Kernel():
            kernel = _kernel(op)
            return price_kernel(kernel, _choose_kernel(op, kernel, machine), machine)
        case _:
            return None


def _tile_matmul(op: npu.MatMul, machine: Machine) -> None:
    choice = choose_matmul(_product(op), machine)
    op.properties["tile"] = ints_attr(choice.block)
    op.properties["tiles"] = int_attr(choice.tiles)
    op.properties["split"] = StringAttr(choice.strategy.value)


def _product(op: npu.MatMul) -> MatMulProblem:
    a, out = shape_of(op.a), shape_of(op.output)
    shared = len(shape_of(op.b)) == 2
    tables = [table for table in (op.scales, op.zeros) if table is not None]
    return MatMulProblem(
        batch=1 if shared else math.prod(out[:-2]),
        m=math.prod(out[:-1]) if shared else out[-2],
        n=out[-1],
        k=a[-2] if int_value(op.transpose_a) else a[-1],
        a=element_of(op.a),
        b=element_of(op.b),
        out=element_of(op.output),
        group=op.group,
        tables=tuple((shape_of(one)[-1], NUMPY[element_of(one)].itemsize) for one in tables),
        row_scales=op.row_scales is not None,
        b_by_columns=not int_value(op.transpose_b),
        chosen=op.choices is not None,
    )


def _tile_attention(op: npu.Attention, machine: Machine) -> None:
    choice = choose_attention(_attention(op), machine)
    op.properties["tile"] = ints_attr((choice.rows, choice.keys, choice.positions))
    op.properties["tiles"] = int_attr(choice.tiles)


def _attention(op: npu.Attention) -> AttentionProblem:
    sequences, heads, m, depth = shape_of(op.q)
    _, key_heads, _, value_depth = shape_of(op.v[0])
    first = op.sequence(0)
    return AttentionProblem(
        sequences=sequences,
        heads=heads,
        key_heads=key_heads,
        m=m,
        length=sum(part_rows(first)),
        depth=depth,
        value_depth=value_depth,
        parts=len(first),
        q=element_of(op.q),
        kv=element_of(op.k[0]),
        out=element_of(op.output),
        mask=None if op.mask is None else element_of(op.mask),
        mask_per_head=op.mask is not None and shape_of(op.mask)[1] > 1,
        mask_per_sequence=op.mask is not None and shape_of(op.mask)[0] > 1,
        scales=element_of(op.k_scales[0]) if op.k_scales else None,
        reach=op.reach_of_rows,
    )


def _tile_kernel(op: npu.Kernel, machine: Machine) -> None:
    choice = _choose_kernel(op, _kernel(op), machine)
    op.properties["tile"] = ints_attr(choice.block)
    op.properties["tiles"] = int_attr(choice.tiles)


def _choose_kernel(op: npu.Kernel, kernel: KernelProblem, machine: Machine) -> KernelChoice:
    """Choose a kernel's block; an error names the ops that need complete rows."""
    try:
        return choose_kernel(kernel, machine)
    except DoesNotFit as error:
        what = f"a kernel of {_described(op)} with rows of {op.domain[-1]}"
        raise DoesNotFit(what, error.need_bytes, error.have_bytes) from None


def _described(op: npu.Kernel) -> str:
    """Return the ops of a kernel that need complete rows, or all ops if none does."""
    computing = [
        each
        for each in op.body.block.ops
        if isinstance(each, OvOp) and not isinstance(each, Constant)
    ]
    whole_rows = [each for each in computing if type(each) in ROWS]
    return ", ".join(each.described for each in whole_rows or computing)


def _kernel(op: npu.Kernel) -> KernelProblem:
    rank = len(op.domain)
    return KernelProblem(
        op.domain,
        kernel_program(op),
        tuple(_operand(value, rank) for value in op.inputs),
        tuple(_operand(value, rank) for value in op.outputs),
    )


def _operand(value: SSAValue, rank: int) -> Operand:
    shape = shape_of(value)
    return Operand((1,) * (rank - len(shape)) + shape, element_of(value))
