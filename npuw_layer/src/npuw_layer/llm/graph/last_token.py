"""The input that says which of the new tokens is the last one in use: padding follows it."""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from npuw_layer.llm.names import LAST_TOKEN


def last_token(model: Model, tokens: int, element: str) -> SSAValue:
    """Give the input LAST_TOKEN [1, 1, tokens]; it is added if the model has none.

    Args:
        model: changed in place.
        tokens: new tokens that it takes.
        element: the type of what it is multiplied with.
    """
    for port in model.inputs:
        if port.name == LAST_TOKEN:
            return port.value
    names = [port.name for port in model.inputs]
    argument = model.body.insert_arg(tensor(element, (1, 1, tokens)), len(names))
    model.set_inputs([*names, LAST_TOKEN])
    return argument
