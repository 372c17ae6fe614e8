"""Sorting of ops in data-flow order."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model
from compiler_layer.rewriting.dataflow import visiting_order
from compiler_layer.rewriting.dead_code import remove_dead_code


@dataclass(frozen=True)
class SortOps(ModulePass):
    """Sort ops in data-flow order.

    Before:  %k = ov.MatMul(%x, %wk); %m = ov.Select(%mask, …); %q = ov.MatMul(%x, %wq)
    After:   %m = ov.Select(%mask, …); %q = ov.MatMul(%x, %wq); %k = ov.MatMul(%x, %wk)

    Ops that depend on masks, positions and constants alone come first; then each op follows its
    operands, in their order. So equal layers have their ops in equal order, and the order of
    kernels does not depend on the exporter's file.

    Requires: ``simplify``; before it, shapes depend on data.
    """

    name = "sort-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        remove_dead_code(model)
        end = model.terminator
        for each in visiting_order(model):
            each.detach()
            model.body.insert_op_before(each, end)
