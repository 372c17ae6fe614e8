"""Lambda lifting: variables become arguments and results."""

from __future__ import annotations

from compiler_layer.model import Model
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.state import lift_state


class LiftState(GraphPass):
    """Turn variables into arguments and results, so that the program is a pure function.

    Before:  %p = ov.ReadValue "past.0.key"; ov.Assign "past.0.key"(%c); return %y
    After:   (…, %p: "vpux_ie_read_value_past.0.key") → return %y, %c: "vpux_ie_assign_past.0.key"

    New arguments and results follow all existing ones, in the order of the ops. Pairs are found by
    the name behind the prefix, never by position: the two orders may differ. The variable's initial
    value is dropped; the caller of the program supplies it.

    Requires: static shapes (``specialize-shapes``) and final precisions of all variables.

    Raises:
        CompilerUsageError: a variable is read or assigned twice, or its initial shape differs.

    Source: npu_compiler's ConvertAssignReadValueToReturnsAndInputs;
    docs/reference/elf.md#state-arguments.
    """

    name = "lift-state"

    def _rewrite(self, model: Model) -> None:
        lift_state(model)
