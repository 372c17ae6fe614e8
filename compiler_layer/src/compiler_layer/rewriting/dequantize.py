"""Recognition of compressed weights among the ops that widen and scale them."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.constant import constant_of
from compiler_layer.dialects.ov.elementwise import Convert, Multiply, Subtract
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape
from compiler_layer.dialects.ov.types import broadcast, element_of, shape_of
from compiler_layer.elements import FLOAT8, INTEGERS
from compiler_layer.rewriting.match import producer, stored_constant
from compiler_layer.rewriting.replace import replace


def _stored(value: SSAValue, elements: frozenset[str]) -> SSAValue | None:
    """Return the constant that a value is converted from, if its type is one of ``elements``."""
    convert = producer(value, Convert)
    constant = constant_of(convert.x) if convert is not None else None
    return constant.output if constant and element_of(constant.output) in elements else None


def _zero(value: SSAValue) -> SSAValue | None:
    """Return a zero point: a constant of integers, or of floats."""
    integers = _stored(value, INTEGERS)
    if integers is not None:
        return integers
    constant = stored_constant(value)
    return constant.output if constant is not None else None


def _centred(value: SSAValue) -> tuple[SSAValue, SSAValue | None] | None:
    """Return the stored values, and the zero point if one is subtracted."""
    difference = producer(value, Subtract)
    if difference is None:
        stored = _stored(value, INTEGERS | FLOAT8)
        return None if stored is None else (stored, None)
    stored = _stored(difference.a, INTEGERS)
    if stored is None:
        return None
    zero = _zero(difference.b)
    return (stored, zero) if zero is not None else None


def _fuse(op: Multiply) -> None:
    for integers, factor in ((op.a, op.b), (op.b, op.a)):
        found, scale = _centred(integers), stored_constant(factor)
        if found is None or scale is None:
            continue
        stored, zero = found
        if broadcast(shape_of(stored), shape_of(scale.output)) != shape_of(stored):
            continue
        tables = [] if zero is None else [zero]
        kind = StringAttr(element_of(op.output))
        replace(op, Dequantize.make([stored, scale.output, tables], destination_type=kind))
        return


def _absorb(op: Convert) -> None:
    """Merge a conversion of weights, or of reshaped weights, into the weights.

    Other uses of the weights keep their type, so no value is rounded twice.
    """
    reshape = producer(op.x, Reshape)
    weights = producer(op.x if reshape is None else reshape.x, Dequantize)
    if weights is None:
        return
    made = [weights] if reshape is None else [weights, reshape]
    single = all(each.output.has_one_use() for each in made)
    if not single and constant_of(weights.stored) is None:
        return  # values computed at run time are not computed twice
    wide = weights.clone()
    wide.properties["destination_type"] = op.destination_type
    new: list[OvOp] = [wide]
    if reshape is not None:
        new.append(reshape.clone({weights.output: wide.output}))
    for each in new:
        each.refresh_types()
    Rewriter.replace_op(op, new)


def fuse_dequantize(ops: Iterable[Operation]) -> None:
    """Recognise compressed weights among ops; the replaced ops stay, unused."""
    listed = list(ops)
    for each in listed:
        if isinstance(each, Multiply):
            _fuse(each)
    for each in listed:
        if isinstance(each, Convert):
            _absorb(each)
