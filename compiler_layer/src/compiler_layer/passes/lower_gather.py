"""Gives embedding lookups to DMA."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.errors import UnsupportedModel
from compiler_layer.model import Model
from compiler_layer.passes.match import producer, stored_constant
from compiler_layer.passes.remove_dead_code import remove_dead_code
from compiler_layer.passes.rewrite import replace


def _as_i64(value: SSAValue) -> SSAValue | None:
    """Row numbers as DMA wants them, seen through conversions between integers."""
    while element_of(value) != "i64":
        convert = producer(value, Convert)
        if convert is None:
            return None
        value = convert.x
    return value


def _lower(op: Gather) -> None:
    table = stored_constant(op.data)
    indices = _as_i64(op.indices)
    by_rows = op.known_axis() == 0 and not int_value(op.batch_dims)
    if table is None or indices is None or not by_rows or len(shape_of(table.output)) != 2:
        raise UnsupportedModel(
            f"gather {op.friendly_name!r}: only rows of a constant table at integer indices"
        )
    stored = table.output
    rows = npu.Gather(
        operands=[stored, indices],
        result_types=[tensor(element_of(stored), shape_of(op.output))],
    )
    if rows.output.type == op.output.type:
        replace(op, rows)
        return
    Rewriter.insert_op(rows, InsertPoint.before(op))
    kind = StringAttr(element_of(op.output))
    replace(op, Convert.make([rows.output], destination_type=kind))


@dataclass(frozen=True)
class LowerGather(ModulePass):
    """Gives embedding lookups to DMA.

    Before:  %t = ov.Convert(%table : tensor<8192x256xf16>) : …xf32 ; %y = ov.Gather(%t, %ids, 0)
    After:   %r = npu.gather(%table, %ids) : …xf16 ; %y = ov.Convert(%r) : …xf32

    Only the rows that are looked up are converted, not the table.

    Raises:
        UnsupportedModel: a gather of something else than rows of a constant table.
    """

    name = "lower-gather"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        for each in list(model.body.ops):
            if isinstance(each, Gather):
                _lower(each)
        remove_dead_code(model)
