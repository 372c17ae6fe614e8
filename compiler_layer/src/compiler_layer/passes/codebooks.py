"""Weights that are looked up in a codebook, which no lowering reads.

    %table = ov.Convert(%values : tensor<16xf8e4m3>)
    %weights = ov.Gather(%table, ov.Convert(%indices : tensor<256x64xui4>), 0) * %scale

NNCF writes weights so that ``--weight-format cb4`` compresses. Small ones are folded before.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model
from compiler_layer.rewriting.match import producer

REMEDY = "export the model with --weight-format int4 or int8"
"""Remedy for weights in codebooks."""


def codebook_refusal(op: Operation) -> str | None:
    """Tell what an op looks up in a codebook, or None if it looks nothing up in one."""
    if not isinstance(op, Gather) or len(shape_of(op.data)) != 1:
        return None
    table, indices = _constant(op.data), _constant(op.indices)
    if table is None or indices is None:
        return None
    return (
        f"of weights from a codebook ({element_of(indices.output)} indices of "
        f"{shape_of(table.output)[0]} values, as --weight-format cb4 writes them)"
    )


def beside_codebooks(model: Model) -> set[Operation]:
    """The ops that make a codebook's indices or take its weights; their refusals follow from it.

    Args:
        model: lowered; not changed.
    """
    found: set[Operation] = set()
    weights: set[SSAValue] = set()
    for op in model.body.ops:
        if codebook_refusal(op) is not None:
            weights.add(op.results[0])
            found |= {convert for x in op.operands if (convert := producer(x, Convert)) is not None}
        elif weights.intersection(op.operands):
            found.add(op)
            if all(x in weights or producer(x, Constant) is not None for x in op.operands):
                weights |= {*op.results}
    return found


def _constant(value: SSAValue) -> Constant | None:
    """The constant behind a value, seen through conversions."""
    while (convert := producer(value, Convert)) is not None:
        value = convert.x
    return producer(value, Constant)
