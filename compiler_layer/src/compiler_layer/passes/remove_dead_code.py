"""Removes ops whose results nobody uses."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from compiler_layer.dialects.ov.state import Assign
from compiler_layer.model import Model


def remove_dead_code(model: Model) -> None:
    """Erase unused ops, last first; assignments and the return stay."""
    for op in reversed(model.ops):
        used = any(result.first_use is not None for result in op.results)
        if not used and not isinstance(op, Assign) and not op.has_trait(IsTerminator):
            op.detach()
            op.erase()


@dataclass(frozen=True)
class RemoveDeadCode(ModulePass):
    """Removes ops whose results nobody uses.

    Before:  %a = ov.Exp(%x); %b = ov.Sqrt(%x); return %b
    After:   %b = ov.Sqrt(%x); return %b

    An assignment is never dead; a variable that is only read is.
    """

    name = "remove-dead-code"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        remove_dead_code(Model(op))
