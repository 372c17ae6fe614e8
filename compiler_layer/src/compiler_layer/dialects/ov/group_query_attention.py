"""Attention as ONNX models have it that are made for ONNX Runtime: with its cache in one op."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import BoolAttr, Float64Type, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_operand_def

from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import Tensor, element_of, shape_of, tensor

_RANK = 4
_OTHERS = ("cos", "sin", "position_ids", "attention_bias", "head_sink", "k_scale", "v_scale")
"""Operands behind those that are always there; one that is not given has no elements."""

_UNKNOWN = ("attention_bias", "k_scale", "v_scale")
"""Those that are not understood."""


@irdl_op_definition
class GroupQueryAttention(OvOp):
    """Attention to a cache, into which new rows of K and V are put (com.microsoft, in OpenVINO).

    q [B, H, T, D], k and v [B, Hkv, T, D]; past_key and past_value [B, Hkv, P, D], of which the
    first rows count. seqlens_k i32 says how many, new ones among them, less 1: token t has the
    position p = seqlens_k + 1 - T + t. Its row of K, turned by rotary angles p if ``do_rotary``
    (or those of ``position_ids`` [B, T]), and its row of V are put at row p; it attends to rows up
    to p, with ``local_window_size`` W to the last W of them. With ``smooth_softmax`` it attends to
    nothing, too, with a score of 0, or of ``head_sink`` [H]. Results: y [B, T, H · D], and the
    caches with the new rows.
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
    def width(self) -> int:
        """D, which the cache tells even where exporters compute the shapes of q and k."""
        return shape_of(self.past_key)[-1]

    @property
    def factor(self) -> float:
        """What scores are multiplied with; 1 / sqrt(D) if none is given."""
        return self.scale.value.data or float(self.width) ** -0.5

    @property
    def window(self) -> int | None:
        """To how many rows a token attends; None: to all up to its own."""
        size = int_value(self.local_window_size)
        return size if size > 0 else None

    @property
    def attends_to_nothing(self) -> bool:
        """Whether weights of tokens add up to less than 1."""
        return bool(int_value(self.smooth_softmax)) or self.other("head_sink") is not None

    def refusal(self) -> str | None:
        """Tell what is asked for that is not understood, or None."""
        asked = {
            "packed K and V": len(shape_of(self.k)) != _RANK,
            "a cache of few bits": int_value(self.kv_cache_bit_width),
            "a cache that slides": int_value(self.sliding_window_cache),
            "no causal mask": not int_value(self.causal),
            **{name: self.other(name) is not None for name in _UNKNOWN},
        }
        return next((f"with {what}" for what, wanted in asked.items() if wanted), None)

    def infer(self) -> list[Tensor]:
        """[B, T, H · D], and the types of the caches."""
        refusal = self.refusal()
        if refusal is not None:
            raise ValueError(f"GroupQueryAttention {refusal}")
        rows = (self.q, self.k, self.v, self.past_key, self.past_value)
        shapes = [shape_of(each) for each in rows]
        if any(len(shape) != _RANK for shape in shapes):
            raise ValueError(f"operands of {[*map(list, shapes)]}")
        heads, shared = int_value(self.num_heads), int_value(self.kv_num_heads)
        if min(heads, shared) <= 0 or heads % shared:
            raise ValueError(f"{heads} query heads over {shared} key heads")
        for shape, own in zip(shapes, (heads, *[shared] * 4), strict=True):
            if shape[1] not in (own, -1) or shape[3] not in (self.width, -1):
                raise ValueError(f"an operand of {list(shape)}, not {own} heads of {self.width}")
        if self.width <= 0 or shape_of(self.past_value)[3] <= 0:
            raise ValueError("a cache whose channels are not known")
        if int_value(self.do_rotary):
            self._check_tables()
        sinks = self.other("head_sink")
        if sinks is not None and math.prod(shape_of(sinks)) != heads:
            raise ValueError(f"a head_sink of {list(shape_of(sinks))} for {heads} heads")
        attended = tensor(element_of(self.q), (shapes[0][0], shapes[0][2], heads * self.width))
        return [attended, *(tensor(element_of(each), shape_of(each)) for each in rows[3:])]

    def _check_tables(self) -> None:
        """See that there are angles for some pairs of channels."""
        tables = [self.other(name) for name in ("cos", "sin")]
        shapes = [shape_of(each) for each in tables if each is not None]
        if len(shapes) != len(tables):
            raise ValueError("do_rotary without tables of angles")
        first = shapes[0]
        known = len(first) == 2 and first[0] > 0 and 0 < 2 * first[1] <= self.width
        if shapes != [first, first] or not known:
            raise ValueError(
                f"tables of angles of {[*map(list, shapes)]} for {self.width} channels"
            )
