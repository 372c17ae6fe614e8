"""Kernels in numpy: their bodies, op by op."""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.reference.interpreter import evaluate
from compiler_layer.reference.meaning import Array, means


@means(npu.Kernel)
def kernel(op: npu.Kernel, *operands: Array) -> tuple[Array, ...]:
    """Evaluate the body; values between its ops are rounded to their types here."""
    values: dict[SSAValue, Array] = dict(zip(op.body.block.args, operands, strict=True))
    for each in op.body.block.ops:
        if isinstance(each, npu.Yield):
            return tuple(values[value] for value in each.values)
        if isinstance(each, Constant):
            values[each.output] = each.load()
        else:
            results = evaluate(each, [values[operand] for operand in each.operands])
            values.update(zip(each.results, results, strict=True))
    return ()
