"""Ops without arithmetic: rows that DMA gathers, tensors that it concatenates, a view of bytes."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_operand_def,
)

from compiler_layer.dialects.ov.types import Tensor

_FORMAT = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class Gather(IRDLOperation):
    """Rows of a table [R, W] at i64 indices [...]; the result is [..., W]."""

    name = "npu.gather"
    table = operand_def(Tensor)
    indices = operand_def(Tensor)
    output = result_def(Tensor)
    assembly_format = _FORMAT


@irdl_op_definition
class Concat(IRDLOperation):
    """Concatenation of tensors along an axis."""

    name = "npu.concat"
    parts = var_operand_def(Tensor)
    axis = prop_def(IntegerAttr)
    output = result_def(Tensor)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = _FORMAT


@irdl_op_definition
class Bytes(IRDLOperation):
    """The bytes u8 [...] of an input of 4-bit elements, which are two elements each."""

    name = "npu.bytes"
    x = operand_def(Tensor)
    output = result_def(Tensor)
    assembly_format = _FORMAT
