"""The ``ov`` dialect: a model's graph, with OpenVINO's op names and semantics.

Begin with ``op``, the base class of all ops, and ``types``; ``constant`` holds weights. Each other
module has the ops of one family.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from compiler_layer.dialects.ov import (
    activation,
    attention,
    constant,
    convolution,
    elementwise,
    gather,
    group_query_attention,
    indexing,
    interpolate,
    logic,
    matmul,
    padding,
    paged_attention,
    pooling,
    quantize,
    random_uniform,
    recurrent,
    reduce,
    scatter,
    shape,
    slicing,
    spectrum,
    state,
    strided_slice,
    transposed_convolution,
)
from compiler_layer.dialects.ov.constant_value import FileAttr, InlineAttr, RepeatedAttr
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import NF4Type

_MODULES = (
    activation,
    attention,
    constant,
    convolution,
    elementwise,
    gather,
    group_query_attention,
    indexing,
    interpolate,
    logic,
    matmul,
    padding,
    paged_attention,
    pooling,
    quantize,
    random_uniform,
    recurrent,
    reduce,
    scatter,
    shape,
    slicing,
    spectrum,
    state,
    strided_slice,
    transposed_convolution,
)


def _ops() -> list[type[OvOp]]:
    return [
        member
        for module in _MODULES
        for member in vars(module).values()
        if isinstance(member, type)
        and issubclass(member, OvOp)
        and member.__module__ == module.__name__
        and hasattr(member, "name")
    ]


_OPS = _ops()

OV = Dialect("ov", [*_OPS], [FileAttr, InlineAttr, RepeatedAttr, NF4Type])
"""Dialect object, for xDSL's context."""

OPS: dict[str, type[OvOp]] = {op.name.removeprefix("ov."): op for op in _OPS}
"""Op classes by OpenVINO's name."""
