"""Views of memory that are no views of elements."""

from __future__ import annotations

from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def

from compiler_layer.dialects.ov.types import Tensor


@irdl_op_definition
class Bytes(IRDLOperation):
    """The bytes u8 [...] of an input of 4-bit elements, which are two elements each."""

    name = "npu.bytes"
    x = operand_def(Tensor)
    output = result_def(Tensor)
    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"
