"""Lambda lifting: conversion of a model's variables to arguments and results of a pure function."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code

READ_PREFIX = "vpux_ie_read_value_"
"""Prefix of the argument that replaces a ReadValue."""

ASSIGN_PREFIX = "vpux_ie_assign_"
"""Prefix of the result that replaces an Assign."""


def lift_state(model: Model) -> None:
    """Turn variables into arguments and results, in place; see ``LiftState``."""
    model.variables()  # rejects variables that are read or assigned twice
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
            f"variable {op.variable_id.data!r} starts as {op.init.type}, but is {op.output.type}; "
            "give it one static shape before lifting"
        )
