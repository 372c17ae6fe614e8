"""Gives matrix products to the DPU."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model
from compiler_layer.passes.match import stored_constant
from compiler_layer.passes.remove_dead_code import remove_dead_code
from compiler_layer.passes.rewrite import replace

DPU_FLOATS = ("f32", "f16", "bf16")
"""Operand types of the DPU."""


def _operand(value: SSAValue) -> SSAValue:
    """A weight in the type it is stored in; anything else as it is."""
    constant = stored_constant(value)
    return value if constant is None else constant.output


def _widened(op: MatMul) -> Convert | None:
    """The conversion to f32 that alone uses the product: the DPU can do it while storing."""
    uses = list(op.output.uses)
    user = uses[0].operation if len(uses) == 1 else None
    if isinstance(user, Convert) and user.destination_type.data == "f32":
        return user
    return None


def _lower(op: MatMul) -> None:
    if len(shape_of(op.a)) < 2 or len(shape_of(op.b)) < 2:
        return
    last = _widened(op) or op
    lowered = npu.MatMul(
        operands=[_operand(op.a), _operand(op.b)],
        properties={"transpose_a": op.transpose_a, "transpose_b": op.transpose_b},
        result_types=[last.results[0].type],
    )
    replace(last, lowered)


@dataclass(frozen=True)
class LowerMatMul(ModulePass):
    """Gives matrix products to the DPU.

    Before:  %w = ov.Convert(%stored : …xbf16) : …xf16 ; %y = ov.MatMul(%x, %w)
    After:   %y = npu.matmul(%x, %stored)

    The DPU widens its operands itself, so that conversions of weights vanish; a conversion of the
    product to f32 does, too, as it accumulates in f32 anyway.
    """

    name = "lower-matmul"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        for each in list(model.body.ops):
            if isinstance(each, MatMul):
                _lower(each)
        remove_dead_code(model)
