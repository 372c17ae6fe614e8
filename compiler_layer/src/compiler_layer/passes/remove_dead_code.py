"""Removal of ops whose results are unused."""

from __future__ import annotations

from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.graph_pass import GraphPass


class RemoveDeadCode(GraphPass):
    """Remove ops whose results are unused.

    Before:  %a = ov.Exp(%x); %b = ov.Sqrt(%x); return %b
    After:   %b = ov.Sqrt(%x); return %b

    An assignment is never dead; a variable that is only read is.
    """

    name = "remove-dead-code"

    def _rewrite(self, model: Model) -> None:
        remove_dead_code(model)
