"""Attention and related fused ops; RMS and RoPE are OpenVINO's internal ops of these names."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, Float64Type, FloatAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    var_operand_def,
)

from compiler_layer.dialects.ov.op import OvOp, SameType, int_value
from compiler_layer.dialects.ov.types import Shape, Tensor, broadcast, element_of, shape_of, tensor


class ScaledDotProductAttention(OvOp):
    """softmax(q kᵀ · scale + mask) v (opset13).

    q is [..., H, M, D], k and v are [..., Hkv, S, D]. In OpenVINO Hkv is H; after ``fuse-sdpa``
    Hkv may be a divisor of H, and query head h attends to key head h // (H / Hkv).
    """

    q = operand_def(Tensor)
    k = operand_def(Tensor)
    v = operand_def(Tensor)
    mask_and_scale = var_operand_def(Tensor)
    causal = prop_def(BoolAttr)
    output = result_def(Tensor)

    @property
    def mask(self) -> SSAValue | None:
        """Addend of the scores, or boolean (true: visible); broadcasts to [..., H, M, S]."""
        return self.mask_and_scale[0] if self.mask_and_scale else None

    @property
    def scale(self) -> SSAValue | None:
        """Factor of the scores, a scalar; None: 1 / sqrt(D)."""
        return self.mask_and_scale[1] if len(self.mask_and_scale) > 1 else None

    def infer(self) -> list[Tensor]:
        """Infer q's shape with the last dimension of v; dimensions before the heads broadcast."""
        q, k, v = shape_of(self.q), shape_of(self.k), shape_of(self.v)
        if len(q) < 2 or len(k) != len(q) or len(v) != len(q):
            raise ValueError(f"q, k and v have ranks {len(q)}, {len(k)} and {len(v)}")
        if not _agree(q[-1], k[-1]) or not _agree(k[-2], v[-2]):
            raise ValueError(f"q, k and v have shapes {list(q)}, {list(k)} and {list(v)}")
        outer = (*broadcast(q[:-3], k[:-3], v[:-3]), *q[-3:-1])
        if self.mask is not None and not int_value(self.causal):
            _check_mask((*outer, k[-2]), shape_of(self.mask))
        if len(q) > 2 and min(q[-3], k[-3]) > 0 and q[-3] % k[-3]:
            raise ValueError(f"{q[-3]} query heads cannot share {k[-3]} key heads")
        return [tensor(element_of(self.q), (*outer, v[-1]))]


def _check_mask(scores: Shape, mask: Shape) -> None:
    """Check that a mask broadcasts to the shape of the scores."""
    joined = broadcast(scores, mask)
    larger = any(not _agree(d, j) for d, j in zip(scores, joined, strict=False))
    if len(joined) > len(scores) or larger:
        raise ValueError(f"mask {list(mask)} does not broadcast to scores {list(scores)}")


def _agree(a: int, b: int) -> bool:
    """Return whether two dimensions may be equal."""
    return a == b or -1 in (a, b)


class RMS(SameType):
    """x / sqrt(mean(x²) + epsilon) · gamma, over the last dimension."""

    x = operand_def(Tensor)
    gamma = opt_operand_def(Tensor)
    epsilon = prop_def(FloatAttr[Float64Type])
    output = result_def(Tensor)


class RoPE(OvOp):
    """x · cos + rotate_half(x) · sin, where rotate_half([a, b]) is [-b, a].

    x is [B, H, M, D]; cos and sin broadcast to x, and may have a wider type.
    """

    x = operand_def(Tensor)
    cos = operand_def(Tensor)
    sin = operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the type of x."""
        if shape_of(self.x)[-1] % 2:
            raise ValueError(f"the last dimension, {shape_of(self.x)[-1]}, is odd")
        return [tensor(element_of(self.x), shape_of(self.x))]
