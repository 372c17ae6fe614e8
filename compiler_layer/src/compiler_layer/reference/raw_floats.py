"""Ops on bf16 and f8, which numpy lacks: computed in f32, rounded once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.types import Tensor, element_of, shape_of, tensor
from compiler_layer.elements import RAW_FLOATS, convert_values
from compiler_layer.reference.meaning import Array, Meaning

_BY_THEMSELVES = Convert | Dequantize
"""Ops that handle raw floats themselves."""


def computes_with_raw_floats(op: Operation) -> bool:
    """Return whether an op has raw floats that numpy would treat as integers."""
    values = (*op.operands, *op.results)
    own = not isinstance(op, OvOp) or isinstance(op, _BY_THEMSELVES)
    return not own and any(map(_is_raw, values))


def evaluate_wide(op: Operation, operands: Sequence[Array], meaning: Meaning) -> tuple[Array, ...]:
    """Compute an op in f32 instead of raw bits, and round its results."""
    block = Block(arg_types=[_wide(value) for value in op.operands])
    twin = op.clone(dict(zip(op.operands, block.args, strict=True)))
    for result in twin.results:
        Rewriter.replace_value_with_new_type(result, _wide(result))
    wide = [
        convert_values(array, element_of(value), "f32") if _is_raw(value) else array
        for value, array in zip(op.operands, operands, strict=True)
    ]
    made = meaning(twin, *wide)
    arrays = made if isinstance(made, tuple) else (made,)
    return tuple(
        convert_values(array, "f32", element_of(result)) if _is_raw(result) else array
        for result, array in zip(op.results, arrays, strict=True)
    )


def _is_raw(value: SSAValue) -> bool:
    return element_of(value) in RAW_FLOATS


def _wide(value: SSAValue) -> Tensor:
    return tensor("f32" if _is_raw(value) else element_of(value), shape_of(value))
