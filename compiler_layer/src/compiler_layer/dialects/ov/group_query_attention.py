"""Attention as ONNX models have it that are made for ONNX Runtime: with its cache in one op."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, Float64Type, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_operand_def

from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import Tensor, element_of, shape_of, tensor

_RANK = 4
_OTHERS = ("cos", "sin", "position_ids", "attention_bias", "head_sink", "k_scale", "v_scale")
"""Operands behind those that are always there; one that is not given has no elements."""


@irdl_op_definition
class GroupQueryAttention(OvOp):
    """Attention to a cache, into which new rows of K and V are put (com.microsoft, in OpenVINO).

    q [B, H, T, D], k and v [B, Hkv, T, D]; past_key and past_value [B, Hkv, P, D], of which the
    first rows count. seqlens_k i32 says how many, new ones among them, less 1: token t has the
    position p = seqlens_k + 1 - T + t. Its row of K, turned by rotary angles p if ``do_rotary``,
    and its row of V are put at row p; it attends to rows up to p, with ``local_window_size`` W to
    the last W of them. Results: y [B, T, H · D], and the caches with the new rows.
    """

    name = "ov.GroupQueryAttention"
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
        """An operand that need not be given, e.g. "cos"; None if it is not."""
        index = _OTHERS.index(name)
        if index >= len(self.others) or 0 in shape_of(self.others[index]):
            return None
        return self.others[index]

    @property
    def factor(self) -> float:
        """What scores are multiplied with; 1 / sqrt(D) if none is given."""
        return self.scale.value.data or float(shape_of(self.q)[-1]) ** -0.5

    @property
    def window(self) -> int | None:
        """To how many rows a token attends; None: to all up to its own."""
        size = int_value(self.local_window_size)
        return size if size > 0 else None

    def refusal(self) -> str | None:
        """Tell what is asked for that is not understood, or None."""
        asked = {
            "packed K and V": len(shape_of(self.k)) != _RANK,
            "a cache of few bits": int_value(self.kv_cache_bit_width),
            "a cache that slides": int_value(self.sliding_window_cache),
            "smooth_softmax": int_value(self.smooth_softmax),
            "no causal mask": not int_value(self.causal),
            **{name: self.other(name) is not None for name in _OTHERS[2:]},
        }
        return next((f"with {what}" for what, wanted in asked.items() if wanted), None)

    def infer(self) -> list[Tensor]:
        """[B, T, H · D], and the types of the caches."""
        q, caches = shape_of(self.q), (self.past_key, self.past_value)
        refusal = self.refusal()
        if refusal is not None:
            raise ValueError(f"GroupQueryAttention {refusal}")
        rows = (self.q, self.k, self.v, *caches)
        if any(len(shape_of(each)) != _RANK for each in rows):
            raise ValueError(f"operands of {[list(shape_of(each)) for each in rows]}")
        if int_value(self.do_rotary) and None in (self.other("cos"), self.other("sin")):
            raise ValueError("do_rotary without tables of angles")
        batch, heads, tokens, width = q
        wide = heads * width if min(heads, width) >= 0 else -1
        attended = tensor(element_of(self.q), (batch, tokens, wide))
        return [attended, *(tensor(element_of(each), shape_of(each)) for each in caches)]
