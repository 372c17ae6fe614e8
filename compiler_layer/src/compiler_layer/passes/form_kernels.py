"""Formation of one SHAVE kernel from each row-wise op."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.attention import RMS, RoPE
from compiler_layer.dialects.ov.constant import Constant, int_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.quantize import Dequantize, FakeConvert, FakeQuantize
from compiler_layer.dialects.ov.reduce import ALONG_AXES, CumSum, ReduceProd
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model
from compiler_layer.partition.row_wise import AlongAxes, is_along_last
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.match import ELEMENTWISE, scalar_of
from compiler_layer.rewriting.replace import replace

_BY_ROW = ELEMENTWISE | Dequantize | FakeConvert | FakeQuantize | RMS | RoPE


def is_row_wise(op: OvOp) -> bool:
    """Return whether each row of the result depends on a single row of each operand."""
    if isinstance(op, AlongAxes):
        return is_along_last(op) and not isinstance(op, ReduceProd)
    if isinstance(op, CumSum):
        return int_of(op.axis) in (-1, len(shape_of(op.x)) - 1)
    return isinstance(op, _BY_ROW)


def _form(op: OvOp) -> None:
    """Wrap an op in a kernel; scalars become immediates, and axes are copied."""
    body = Block()
    inputs: list[SSAValue] = []
    inside: dict[SSAValue, SSAValue] = {}
    for index, operand in enumerate(op.operands):
        axes = isinstance(op, ALONG_AXES) and index == 1
        owner = operand.owner
        if operand in inside:
            continue
        if isinstance(owner, Constant) and (axes or scalar_of(operand) is not None):
            copy = owner.clone()
            body.add_op(copy)
            inside[operand] = copy.output
        else:
            inputs.append(operand)
            inside[operand] = body.insert_arg(operand.type, len(body.args))
    copy = op.clone(inside)
    body.add_ops([copy, npu.Yield(*copy.results)])
    replace(op, npu.Kernel(inputs, op.result_types, body))


class FormKernels(GraphPass):
    """Wrap each row-wise op in a SHAVE kernel.

    Before:  %y = ov.Add(%x, %two)
    After:   %y = npu.kernel(%x) { ^(%a): %c = ov.Constant 2; %r = ov.Add(%a, %c); npu.yield %r }

    Row-wise ops are element-wise ops, RMS, RoPE, and reductions, prefix sums and softmax over the
    last dimension.
    """

    name = "form-kernels"

    def _rewrite(self, model: Model) -> None:
        for each in model.ops:
            if isinstance(each, OvOp) and is_row_wise(each):
                _form(each)
