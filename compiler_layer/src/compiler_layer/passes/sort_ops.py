"""Sorting of ops in data-flow order."""

from __future__ import annotations

from compiler_layer.model import Model
from compiler_layer.rewriting.dataflow import visiting_order
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.graph_pass import GraphPass


class SortOps(GraphPass):
    """Sort ops in data-flow order.

    Before:  %k = ov.MatMul(%x, %wk); %m = ov.Select(%mask, …); %q = ov.MatMul(%x, %wq)
    After:   %m = ov.Select(%mask, …); %q = ov.MatMul(%x, %wq); %k = ov.MatMul(%x, %wk)

    Ops that depend on masks, positions and constants alone come first; then each op follows its
    operands, in their order. So equal layers have their ops in equal order, and the order of
    kernels does not depend on the exporter's file.

    Requires: ``simplify``; before it, shapes depend on data.
    """

    name = "sort-ops"

    def _rewrite(self, model: Model) -> None:
        remove_dead_code(model)
        end = model.terminator
        for each in visiting_order(model):
            each.detach()
            model.body.insert_op_before(each, end)
