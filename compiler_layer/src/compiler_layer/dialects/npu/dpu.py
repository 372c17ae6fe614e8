"""What the DPU computes: matrix products, and attention around two of them."""

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
"""Block sizes, set by the ``tile`` pass."""

LOWEST = float(np.finfo(np.float32).min)
"""The addend that masks the score of a position."""


@irdl_op_definition
class MatMul(IRDLOperation):
    """[..., M, K] x [..., K, N], operands transposed as the flags say, summed in f32.

    Operand types may differ: the DPU widens both. A quantised b [N, K], always with
    ``transpose_b``, stands for (b - zeros) · scales, which have a column per group of channels; a
    quantised a has a number per row, ``row_scales``, or stands for (a - a_zero) · a_scale, the same
    for all of it. A 4-bit b has its elements in pairs.

    With ``choices``, i64 [P], b, scales and zeros are stacks [E, …] of which plane i of the product
    takes the matrix of that number: a is [P, M, K], b [E, N, K], always with ``transpose_b``.

    ``tile`` is the block of (M, N, K) that a tile computes at a time; ``tiles`` NCE tiles share
    either the rows or the columns of the product, as ``split`` says: "m" or "n".
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
        """What a step of a is worth."""
        return 1.0 if self.a_scale is None else self.a_scale.value.data

    @property
    def a_zero_value(self) -> int:
        """The step of a that stands for zero."""
        return 0 if self.a_zero is None else int_value(self.a_zero)

    @property
    def channels(self) -> int:
        """K."""
        a = shape_of(self.a)
        return a[-2] if self.transpose_a.value.data else a[-1]

    @property
    def group(self) -> int:
        """Channels that share a scale."""
        tables = [table for table in (self.scales, self.zeros) if table is not None]
        return self.channels // max((shape_of(table)[-1] for table in tables), default=1)


@irdl_op_definition
class Attention(IRDLOperation):
    """softmax(q kᵀ · scale + mask) v, with keys and values in parts along the sequence.

    q [B, H, M, D]; each part of k and v [1, Hkv, S_i, D], those of the first of B sequences in
    order, then those of the second, which are as long; mask broadcasts to [B, H, M, S]. A position
    whose mask is very low contributes exactly nothing. The sequences' keys and values may lie
    anywhere: they are never joined.

    Keys and values may be stored in 8 bits: then each row of a head is worth a number, and each
    part of k and v has a tensor of them, [1, Hkv, S_i, 1].

    ``tile`` is the block of (query rows, key rows, positions) of one key head; with fewer positions
    at a time than there are, the softmax is found online, as in FlashAttention. ``tiles`` NCE tiles
    share the blocks.

    ``reach`` promises for each query row that the mask is very low from that position on, as a
    causal mask is for tokens that come later: what lies there need not be computed.
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
        """What scores are multiplied with."""
        return self.scale.value.data

    @property
    def sequences(self) -> int:
        """B."""
        return shape_of(self.q)[0]

    def sequence(self, number: int) -> Sequence[SSAValue]:
        """The parts of the keys of one sequence."""
        count = len(self.k) // self.sequences
        return self.k[number * count : (number + 1) * count]

    @property
    def reach_of_rows(self) -> tuple[int, ...]:
        """For each query row, how many positions it may attend to; empty if that is all."""
        return () if self.reach is None else tuple(int(one) for one in self.reach.get_values())

    def verify_(self) -> None:
        """Check ranks, heads, part counts, and that rows reach what there is."""
        q = shape_of(self.q)
        if len(q) != 4 or len(self.k) != len(self.v) or not self.k:
            raise VerifyException("npu.attention takes q [B, H, M, D] and as many k as v")
        for part in (*self.k, *self.v):
            shape = shape_of(part)
            if len(shape) != 4 or shape[0] != 1 or q[1] % shape[1]:
                raise VerifyException(f"a key or value part of {list(shape)} for q of {list(q)}")
        if len(self.k) % q[0] or part_rows(self.k) != part_rows(self.sequence(0)) * q[0]:
            raise VerifyException(f"npu.attention takes equally long keys for {q[0]} sequences")
        for parts, scales in ((self.k, self.k_scales), (self.v, self.v_scales)):
            wanted = [(*shape_of(part)[:3], 1) for part in parts] if self.k_scales else []
            if [shape_of(scale) for scale in scales] != wanted:
                raise VerifyException("npu.attention takes a scale for each row of a head, or none")
        reach, positions = self.reach_of_rows, sum(part_rows(self.sequence(0)))
        if reach and (len(reach) != q[2] or not 1 <= min(reach) <= max(reach) <= positions):
            raise VerifyException(
                f"npu.attention reaches 1 to {positions} positions, for each of {q[2]} rows"
            )


def part_rows(parts: Sequence[SSAValue]) -> list[int]:
    """How many rows each part of the keys or values has."""
    return [shape_of(part)[2] for part in parts]
