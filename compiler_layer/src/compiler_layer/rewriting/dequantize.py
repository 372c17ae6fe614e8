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
from compiler_layer.dialects.ov.shape import Reshape, Transpose
from compiler_layer.dialects.ov.types import broadcast, element_of, shape_of
from compiler_layer.elements import FLOAT8, INTEGERS
from compiler_layer.rewriting.match import is_stored, producer, stored_value
from compiler_layer.rewriting.replace import insert_before, replace, reshape_before

_OF_INPUTS = frozenset({"i8", "u8", "i4", "u4", *FLOAT8})
"""Element types of inputs that are weights; wider integers count or select."""


def _stored(value: SSAValue, elements: frozenset[str]) -> SSAValue | None:
    """Return the constant or input that a value is converted from, if its type is as given."""
    convert = producer(value, Convert)
    if convert is None or not is_stored(convert.x):
        return None
    if constant_of(convert.x) is None:
        elements &= _OF_INPUTS
    return convert.x if element_of(convert.x) in elements else None


def _zero(value: SSAValue) -> SSAValue | None:
    """Return a zero point: a constant or an input, of integers or of floats."""
    integers = _stored(value, INTEGERS)
    return stored_value(value) if integers is None else integers


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
        found, scale = _centred(integers), stored_value(factor)
        if found is None or scale is None:
            continue
        stored, zero = found
        if broadcast(shape_of(stored), shape_of(scale)) != shape_of(stored):
            continue
        tables = [] if zero is None else [zero]
        kind = StringAttr(element_of(op.output))
        replace(op, Dequantize.make([stored, scale, tables], destination_type=kind))
        return


def _transpose_stored(op: Transpose) -> None:
    """Transpose stored weights and their tables before they are widened, if a reshape follows.

    NPUW stores the groups of 4-bit weights first, [groups, rows, channels of a group], and
    transposes them in the graph (docs/reference/npuw.md#inputs-of-submodels). The last dimension
    stays, as it pairs 4-bit elements.
    """
    weights, order = producer(op.x, Dequantize), op.permutation()
    last = len(order) - 1
    joined = all(isinstance(use.operation, Reshape) for use in op.output.uses)
    if weights is None or not joined or order[last] != last:
        return
    parts: list[SSAValue] = []
    for part in weights.operands:
        dims = shape_of(part)
        if len(dims) < len(order):
            part = reshape_before(op, part, (1,) * (len(order) - len(dims)) + dims)
        parts.append(insert_before(op, Transpose.make([part, op.order])))
    kind = weights.destination_type
    replace(op, Dequantize.make([parts[0], parts[1], parts[2:]], destination_type=kind))


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
        if isinstance(each, Transpose):
            _transpose_stored(each)
    for each in listed:
        if isinstance(each, Convert):
            _absorb(each)
