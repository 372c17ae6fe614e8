"""Removal of ops whose results are unused."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code


@dataclass(frozen=True)
class RemoveDeadCode(ModulePass):
    """Remove ops whose results are unused.

    Before:  %a = ov.Exp(%x); %b = ov.Sqrt(%x); return %b
    After:   %b = ov.Sqrt(%x); return %b

    An assignment is never dead; a variable that is only read is.
    """

    name = "remove-dead-code"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        remove_dead_code(Model(op))
