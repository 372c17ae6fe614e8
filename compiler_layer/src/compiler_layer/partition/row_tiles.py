"""Model of a tile: a row-wise model for fewer rows."""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Tensor, element_of, shape_of, tensor, tensor_type
from compiler_layer.model import Model
from compiler_layer.partition.row_wise import Rows


def tile_model(model: Model, rows: Rows, count: int) -> Model:
    """Copy a row-wise model for any ``count`` of its rows.

    Args:
        model: not changed.
        rows: the model's rows (``find_rows``).
        count: the number of rows of a tile.
    """

    def kind(value: SSAValue) -> Tensor:
        if value not in rows.values:
            return tensor_type(value)
        *before, _, width = shape_of(value)
        return tensor(element_of(value), (*before, count, width))

    made, arguments = Model.build([(port.name, kind(port.value)) for port in model.inputs])
    copies: dict[SSAValue, SSAValue] = dict(zip(model.body.args, arguments, strict=True))
    for op in model.body.ops:
        if op is model.terminator:
            continue
        copy = op.clone(copies)
        made.body.insert_op_before(copy, made.terminator)
        if isinstance(copy, OvOp):
            copy.refresh_types()
        copies.update(zip(op.results, copy.results, strict=True))
    made.set_outputs([(port.name, copies[port.value]) for port in model.outputs])
    return made
