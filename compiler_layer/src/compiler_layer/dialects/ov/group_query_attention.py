"""Attention with its cache in one op, as in ONNX models made for ONNX Runtime."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import BoolAttr, Float64Type, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, var_operand_def

from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import Tensor, element_of, shape_of, tensor

_RANK = 4
_OTHERS = ("cos", "sin", "position_ids", "attention_bias", "head_sink", "k_scale", "v_scale")
"""Optional operands, after the required ones; an absent one has no elements."""

_UNKNOWN = ("attention_bias", "k_scale", "v_scale")
"""Optional operands that are not supported."""


class GroupQueryAttention(OvOp):
    """Attention to a cache that the op extends by new rows (com.microsoft, in OpenVINO).

    q is [B, H, T, D], k and v are [B, Hkv, T, D]; past_key and past_value are [B, Hkv, P, D], of
    which the first rows are valid. seqlens_k i32 is the number of valid rows, including the new
    ones, less 1: token t has the position p = seqlens_k + 1 - T + t. Its rows of K and V are stored
    at row p; with ``do_rotary`` K is first rotated by the angles of p (or of ``position_ids``
    [B, T]). The token attends to rows up to p, with ``local_window_size`` W to the last W of them.
    With ``smooth_softmax`` the softmax has an additional score without a value: 0, or ``head_sink``
    [H]. Results: y [B, T, H · D], and the caches with the new rows.
    """

    q = operand_def(Tensor)
    k = operand_def(Tensor)
    v = operand_def(Tensor)
    past_key = operand_def(Tensor)
    past_value = operand_def(Tensor)
    seqlens_k = operand_def(Tensor)
    total_sequence_length = operand_def(Tensor)
    others = var_operand_def(Tensor)
    num_heads = prop_def(IntegerAttr)
    kv_num_heads = prop_def(IntegerAttr)
    scale = prop_def(FloatAttr[Float64Type])
    do_rotary = prop_def(BoolAttr)
    rotary_interleaved = prop_def(BoolAttr)
    local_window_size = prop_def(IntegerAttr)
    causal = prop_def(BoolAttr)
    kv_cache_bit_width = prop_def(IntegerAttr)
    sliding_window_cache = prop_def(BoolAttr)
    smooth_softmax = prop_def(BoolAttr)
    k_quant_type = prop_def(StringAttr)
    v_quant_type = prop_def(StringAttr)
    y = result_def(Tensor)
    present_key = result_def(Tensor)
    present_value = result_def(Tensor)

    def other(self, name: str) -> SSAValue | None:
        """Return an optional operand by name, e.g. "cos"; None if it is absent."""
        index = _OTHERS.index(name)
        if index >= len(self.others) or 0 in shape_of(self.others[index]):
            return None
        return self.others[index]

    @property
    def width(self) -> int:
        """Head size D, taken from the cache: exporters may compute the shapes of q and k."""
        return shape_of(self.past_key)[-1]

    @property
    def factor(self) -> float:
        """Factor of the scores; 1 / sqrt(D) by default."""
        return self.scale.value.data or float(self.width) ** -0.5

    @property
    def window(self) -> int | None:
        """Number of rows that a token attends to; None: all up to its own."""
        size = int_value(self.local_window_size)
        return size if size > 0 else None

    @property
    def attends_to_nothing(self) -> bool:
        """True if the attention weights of the tokens sum to less than 1."""
        return bool(int_value(self.smooth_softmax)) or self.other("head_sink") is not None

    def refusal(self) -> str | None:
        """Return the requested feature that is not supported, or None."""
        asked = {
            "packed K and V": len(shape_of(self.k)) != _RANK,
            "a quantized cache": int_value(self.kv_cache_bit_width),
            "a sliding cache": int_value(self.sliding_window_cache),
            "non-causal attention": not int_value(self.causal),
            **{name: self.other(name) is not None for name in _UNKNOWN},
        }
        return next((f"with {what}" for what, wanted in asked.items() if wanted), None)

    def infer(self) -> list[Tensor]:
        """Infer [B, T, H · D], and the types of the caches."""
        refusal = self.refusal()
        if refusal is not None:
            raise ValueError(f"GroupQueryAttention {refusal}")
        rows = (self.q, self.k, self.v, self.past_key, self.past_value)
        shapes = [shape_of(each) for each in rows]
        if any(len(shape) != _RANK for shape in shapes):
            raise ValueError(f"operand shapes {[*map(list, shapes)]} are not all of rank 4")
        heads, shared = int_value(self.num_heads), int_value(self.kv_num_heads)
        if min(heads, shared) <= 0 or heads % shared:
            raise ValueError(f"{heads} query heads cannot share {shared} key heads")
        for shape, own in zip(shapes, (heads, *[shared] * 4), strict=True):
            if shape[1] not in (own, -1) or shape[3] not in (self.width, -1):
                raise ValueError(f"an operand is {list(shape)}, not {own} heads of {self.width}")
        if self.width <= 0 or shape_of(self.past_value)[3] <= 0:
            raise ValueError("the number of channels of a cache is not known")
        if int_value(self.do_rotary):
            self._check_tables()
        sinks = self.other("head_sink")
        if sinks is not None and math.prod(shape_of(sinks)) != heads:
            raise ValueError(f"head_sink {list(shape_of(sinks))} does not fit {heads} heads")
        attended = tensor(element_of(self.q), (shapes[0][0], shapes[0][2], heads * self.width))
        return [attended, *(tensor(element_of(each), shape_of(each)) for each in rows[3:])]

    def _check_tables(self) -> None:
        """Check that the cos and sin tables cover pairs of channels of a head."""
        tables = [self.other(name) for name in ("cos", "sin")]
        shapes = [shape_of(each) for each in tables if each is not None]
        if len(shapes) != len(tables):
            raise ValueError("do_rotary needs cos and sin tables")
        first = shapes[0]
        known = len(first) == 2 and first[0] > 0 and 0 < 2 * first[1] <= self.width
        if shapes != [first, first] or not known:
            raise ValueError(
                f"cos and sin tables {[*map(list, shapes)]} do not fit {self.width} channels"
            )
