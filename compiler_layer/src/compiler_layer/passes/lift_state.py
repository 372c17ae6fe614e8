"""Turns variables into arguments and results: the program becomes a pure function."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model
from compiler_layer.rewriting.state import lift_state


@dataclass(frozen=True)
class LiftState(ModulePass):
    """Turns variables into arguments and results, so that the program is a pure function.

    Before:  %p = ov.ReadValue "past.0.key"; ov.Assign "past.0.key"(%c); return %y
    After:   (…, %p: "vpux_ie_read_value_past.0.key") → return %y, %c: "vpux_ie_assign_past.0.key"

    New arguments and results come after all existing ones, in the order of the ops. They are paired
    by the name behind the prefix, never by position: the two orders may differ. The variable's
    initial value is dropped: whoever runs the program supplies it.

    Requires: every variable has a static shape (``specialize-shapes``), and its final precision.

    Raises:
        CompilerUsageError: a variable is read or assigned twice, or starts in another shape.
    Source: npu_compiler's ConvertAssignReadValueToReturnsAndInputs; fact sheet elf_driver §4.3.
    """

    name = "lift-state"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        lift_state(Model(op))
