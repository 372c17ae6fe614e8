"""DPU ops: matmul, and attention with its two matmuls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import Tensor, shape_of

TileAttr = DenseArrayBase[IntegerType]
"""Sizes of the block that a tile computes, set by the ``tile`` pass."""

LOWEST = float(np.finfo(np.float32).min)
"""Addend that masks the score of a position."""


@irdl_op_definition
class MatMul(IRDLOperation):
    """Matmul of a [..., M, K] and b [..., K, N], transposed by the flags, summed in f32.

    Operand types may differ: the DPU widens both. A quantized b [N, K], always with
    ``transpose_b``, represents (b - zeros) · scales; both tables have a column per quantization
    group. A quantized a has either one scale per row, ``row_scales``, or one scale and one zero
    point for the tensor: (a - a_zero) · a_scale. The elements of a 4-bit b are stored in pairs.

    With ``choices``, i64 [P], b, scales and zeros are stacks [E, …]; plane i of the result uses
    the matrix number choices[i]: a is [P, M, K], b [E, N, K], always with ``transpose_b``.

    ``tile`` is the block of (M, N, K) that a tile computes at a time; ``tiles`` NCE tiles share
    either the rows or the columns of the result: ``split`` is "m" or "n".
    """

    name = "npu.matmul"
    a = operand_def(Tensor)
    b = operand_def(Tensor)
    scales = opt_operand_def(Tensor)
    zeros = opt_operand_def(Tensor)
    row_scales = opt_operand_def(Tensor)
    choices = opt_operand_def(Tensor)
    transpose_a = prop_def(BoolAttr)
    transpose_b = prop_def(BoolAttr)
    a_scale = opt_prop_def(FloatAttr[Float64Type])
    a_zero = opt_prop_def(IntegerAttr)
    tile = opt_prop_def(TileAttr)
    tiles = opt_prop_def(IntegerAttr)
    split = opt_prop_def(StringAttr)
    output = result_def(Tensor)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "`(` $a `,` $b `)` (`scales` $scales^)? (`zeros` $zeros^)? (`rows` $row_scales^)? "
        "(`choices` $choices^)? attr-dict `:` `(` type($a) `,` type($b) `)` "
        "(`scales` type($scales)^)? (`zeros` type($zeros)^)? (`rows` type($row_scales)^)? "
        "(`choices` type($choices)^)? `->` type($output)"
    )

    @property
    def a_scale_value(self) -> float:
        """Scale of a; 1 if a is not quantized per tensor."""
        return 1.0 if self.a_scale is None else self.a_scale.value.data

    @property
    def a_zero_value(self) -> int:
        """Zero point of a."""
        return 0 if self.a_zero is None else int_value(self.a_zero)

    @property
    def channels(self) -> int:
        """Number of input channels, K."""
        a = shape_of(self.a)
        return a[-2] if self.transpose_a.value.data else a[-1]

    @property
    def group(self) -> int:
        """Number of channels in a quantization group."""
        tables = [table for table in (self.scales, self.zeros) if table is not None]
        return self.channels // max((shape_of(table)[-1] for table in tables), default=1)


@irdl_op_definition
class Attention(IRDLOperation):
    """softmax(q kᵀ · scale + mask) v, with keys and values in parts along the sequence.

    q is [B, H, M, D]; each part of k and v is [1, Hkv, S_i, D]. The parts of the first of B
    sequences come first, in order, then those of the second, with equal lengths. The mask
    broadcasts to [B, H, M, S]; a position with a very low mask contributes exactly nothing. Parts
    may be located anywhere in memory: they are never concatenated.

    Keys and values may be stored in 8 bits: then each row of a head has a scale, and each part of k
    and v has a tensor of scales, [1, Hkv, S_i, 1].

    ``tile`` is the block of (query rows, key rows, positions) of one key head; if it has fewer
    positions than S, the softmax is computed online, as in FlashAttention. The blocks are divided
    among ``tiles`` NCE tiles.

    ``reach`` states for each query row the number of visible positions: the mask is very low from
    there on, as a causal mask is for later tokens. The other positions need not be computed.
    """

    name = "npu.attention"
    q = operand_def(Tensor)
    k = var_operand_def(Tensor)
    v = var_operand_def(Tensor)
    mask = opt_operand_def(Tensor)
    k_scales = var_operand_def(Tensor)
    v_scales = var_operand_def(Tensor)
    scale = prop_def(FloatAttr[Float64Type])
    reach = opt_prop_def(DenseArrayBase[IntegerType])
    tile = opt_prop_def(TileAttr)
    tiles = opt_prop_def(IntegerAttr)
    output = result_def(Tensor)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$q `keys` $k `values` $v (`mask` $mask^)? "
        "(`key_scales` $k_scales^ `value_scales` $v_scales)? attr-dict `:` "
        "type($q) `keys` type($k) `values` type($v) (`mask` type($mask)^)? "
        "(`key_scales` type($k_scales)^ `value_scales` type($v_scales))? `->` type($output)"
    )

    @property
    def scale_value(self) -> float:
        """Factor of the scores."""
        return self.scale.value.data

    @property
    def sequences(self) -> int:
        """Number of sequences, B."""
        return shape_of(self.q)[0]

    def sequence(self, number: int) -> Sequence[SSAValue]:
        """Return the parts of the keys of one sequence."""
        count = len(self.k) // self.sequences
        return self.k[number * count : (number + 1) * count]

    @property
    def reach_of_rows(self) -> tuple[int, ...]:
        """Number of visible positions for each query row; empty if all are visible."""
        return () if self.reach is None else tuple(int(one) for one in self.reach.get_values())

    def verify_(self) -> None:
        """Check ranks, heads, part counts, scales and ``reach``."""
        q = shape_of(self.q)
        if len(q) != 4 or len(self.k) != len(self.v) or not self.k:
            raise VerifyException("npu.attention takes q [B, H, M, D], and equally many k and v")
        for part in (*self.k, *self.v):
            shape = shape_of(part)
            if len(shape) != 4 or shape[0] != 1 or q[1] % shape[1]:
                raise VerifyException(f"a key or value part {list(shape)} does not fit q {list(q)}")
        if len(self.k) % q[0] or part_rows(self.k) != part_rows(self.sequence(0)) * q[0]:
            raise VerifyException(f"npu.attention needs keys of equal length for {q[0]} sequences")
        for parts, scales in ((self.k, self.k_scales), (self.v, self.v_scales)):
            wanted = [(*shape_of(part)[:3], 1) for part in parts] if self.k_scales else []
            if [shape_of(scale) for scale in scales] != wanted:
                raise VerifyException("npu.attention takes a scale for each row of a head, or none")
        reach, positions = self.reach_of_rows, sum(part_rows(self.sequence(0)))
        if reach and (len(reach) != q[2] or not 1 <= min(reach) <= max(reach) <= positions):
            raise VerifyException(
                f"npu.attention needs a reach of 1 to {positions} positions for each of {q[2]} rows"
            )


def part_rows(parts: Sequence[SSAValue]) -> list[int]:
    """Return the number of rows of each part of the keys or values."""
    return [shape_of(part)[2] for part in parts]
