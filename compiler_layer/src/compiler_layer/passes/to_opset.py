"""Says with ops of OpenVINO's opsets what only this compiler has one op for."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.elementwise import Convert, Multiply, Subtract
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.quantize import Dequantize, FakeConvert, FakeQuantize
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import FLOATS
from compiler_layer.model import Model
from compiler_layer.passes.rewrite import insert_before, take_over


def _converted(place: OvOp, value: SSAValue, element: str) -> SSAValue:
    if element_of(value) == element:
        return value
    return insert_before(place, Convert.make([value], destination_type=StringAttr(element)))


def _expand(op: Dequantize) -> None:
    value = _converted(op, op.stored, "f32")
    if op.zero is not None:
        value = insert_before(op, Subtract.make([value, _converted(op, op.zero, "f32")]))
    value = insert_before(op, Multiply.make([value, _converted(op, op.scale, "f32")]))
    take_over(op, _converted(op, value, op.destination_type.data))


def _agree(op: ScaledDotProductAttention | FakeConvert | FakeQuantize) -> None:
    """Let all operands that are floats have the type of the first."""
    element = element_of(op.operands[0])
    for index, operand in enumerate(op.operands):
        if element_of(operand) in FLOATS:
            op.operands[index] = _converted(op, operand, element)


@dataclass(frozen=True)
class ToOpset(ModulePass):
    """Says with ops of OpenVINO's opsets what only this compiler has one op for.

    Before:  %w = ov.Dequantize(%stored : …xu8, %scale : …xf16) : …xf32
             %y = ov.ScaledDotProductAttention(%q : …xf16, %k, %v, %mask : …xf32)
    After:   %c = ov.Convert(%stored) : …xf32 ; %s = ov.Convert(%scale) : …xf32
             %w = ov.Multiply(%c, %s) : …xf32
             %m = ov.Convert(%mask) : …xf16 ; %y = ov.ScaledDotProductAttention(%q, %k, %v, %m)

    Whoever runs the graph elsewhere needs it: no opset has Dequantize, or mixes types of floats.
    """

    name = "to-opset"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        for each in list(model.body.ops):
            if isinstance(each, Dequantize):
                _expand(each)
            elif isinstance(each, ScaledDotProductAttention | FakeConvert | FakeQuantize):
                _agree(each)
