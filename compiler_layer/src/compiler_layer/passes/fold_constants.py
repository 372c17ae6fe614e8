"""Computes at compile time what depends on constants alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.constant import Constant, FileAttr, constant_of
from compiler_layer.dialects.ov.convert import Array
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import NUMPY, element_of, is_static, shape_of
from compiler_layer.model import Model
from compiler_layer.passes.remove_dead_code import remove_dead_code
from compiler_layer.reference.interpreter import evaluate

_WEIGHT_BYTES = 4096
"""A constant of a file above this size is a weight: it is not copied into the IR."""


def fold(op: Operation) -> bool:
    """Replace an op by constants if its value is known; tell whether it was."""
    values = _known_values(op)
    if values is None:
        return False
    constants = [
        Constant.inline(value, element_of(result))
        for value, result in zip(values, op.results, strict=True)
    ]
    Rewriter.replace_op(op, constants, [constant.output for constant in constants])
    return True


def _known_values(op: Operation) -> Sequence[Array] | None:
    if isinstance(op, ShapeOf):
        shape = shape_of(op.x)
        return [np.array(shape, NUMPY[op.output_type.data])] if is_static(shape) else None
    if not isinstance(op, OvOp) or isinstance(op, Constant | ReadValue | Assign | Dequantize):
        return None
    constants = [constant_of(operand) for operand in op.operands]
    if any(constant is None or _is_weight(constant) for constant in constants):
        return None
    return evaluate(op, [constant.load() for constant in constants if constant is not None])


def _is_weight(constant: Constant) -> bool:
    return isinstance(constant.value, FileAttr) and constant.nbytes > _WEIGHT_BYTES


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Computes at compile time what depends on constants alone.

    Before:  %a = ov.Constant [1, 2]; %b = ov.Add(%a, %a)
    After:   %b = ov.Constant [2, 4]

    Weights stay as they are: converting and scaling them is left to the hardware.
    """

    name = "fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        for each in list(model.body.ops):
            fold(each)
        remove_dead_code(model)
