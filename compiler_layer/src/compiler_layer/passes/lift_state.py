"""Turns variables into arguments and results: the program becomes a pure function."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.passes.remove_dead_code import remove_dead_code

READ_PREFIX = "vpux_ie_read_value_"
"""Begins the name of the argument that a ReadValue becomes."""

ASSIGN_PREFIX = "vpux_ie_assign_"
"""Begins the name of the result that an Assign becomes."""


def lift_state(model: Model) -> None:
    """Rewrite a model in place; see ``LiftState``."""
    model.variables()  # refuses variables that are read or assigned twice
    names = [port.name for port in model.inputs]
    outputs: list[tuple[str, SSAValue]] = [(port.name, port.value) for port in model.outputs]
    for op in model.ops:
        if isinstance(op, ReadValue):
            _check_init(op)
            argument = model.body.insert_arg(op.output.type, len(model.body.args))
            names.append(READ_PREFIX + op.variable_id.data)
            Rewriter.replace_op(op, [], [argument])
        elif isinstance(op, Assign):
            outputs.append((ASSIGN_PREFIX + op.variable_id.data, op.value))
            outputs = [(n, op.value if v is op.output else v) for n, v in outputs]
            Rewriter.replace_op(op, [], [op.value])
    model.set_inputs(names)
    model.set_outputs(outputs)
    remove_dead_code(model)


def _check_init(op: ReadValue) -> None:
    if op.init is not None and op.init.type != op.output.type:
        raise CompilerUsageError(
            f"variable {op.variable_id.data!r} starts as {op.init.type} and is {op.output.type}; "
            "give it one static shape before lifting"
        )


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
