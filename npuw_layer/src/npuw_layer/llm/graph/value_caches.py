"""Search for the caches that attention reads, and for those that hold V."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.reduce import Softmax
from compiler_layer.dialects.ov.shape import Broadcast, Reshape, Transpose, Unsqueeze
from compiler_layer.dialects.ov.slicing import Concat, Slice
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.model import Model

_MOVING = (Broadcast, Concat, Convert, Gather, Reshape, Slice, Transpose, Unsqueeze)
"""Ops between a cache and its matmul, which move their first operand."""


def value_caches(model: Model) -> frozenset[str]:
    """Return the ids of variables that attention reads as V and not as K.

    Args:
        model: a language model's graph; attention may be one op, or a matmul with a softmax.
    """
    keys, values = _read_by_attention(model)
    return values - keys


def attended_caches(model: Model) -> frozenset[str]:
    """Return the ids of variables that attention reads directly."""
    keys, values = _read_by_attention(model)
    return keys | values


def _read_by_attention(model: Model) -> tuple[frozenset[str], frozenset[str]]:
    """Return the variables that are read as K, and those read as V."""
    keys, values = set[str](), set[str]()
    for op in model.body.ops:
        if isinstance(op, ScaledDotProductAttention):
            values |= _variables(op.v)
            keys |= _variables(op.k)
        elif isinstance(op, MatMul):
            of_values = any(isinstance(each, Softmax) for each in _origins(op.a))
            (values if of_values else keys).update(_variables(op.b))
    return frozenset(keys), frozenset(values)


def _variables(value: SSAValue) -> set[str]:
    """Return the variables that a value is read from."""
    return {op.variable_id.data for op in _origins(value) if isinstance(op, ReadValue)}


def _origins(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that produced a value's content, before it was moved."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, Concat):
            pending += owner.parts
        elif isinstance(owner, _MOVING):
            pending.append(owner.operands[0])
        elif isinstance(owner, Operation):
            yield owner
