"""Preparation of a static model's graph for compilation, and its initial values.

OpenVINO recomputes a variable's initial value at the first read after a reset. On the NPU a
variable is memory, and its initial value must be known beforehand. It is therefore computed once,
and may depend on the shapes of the inputs, as exporters write it, but not on their values.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.convolution import Convolution
from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.dialects.ov.types import Shape, element_of, is_static, shape_of
from compiler_layer.elements import NUMPY, convert_values
from compiler_layer.errors import CompilerError
from compiler_layer.model import Model, Variable
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.shapes import specialize_shapes
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.computed import behind


def prepare(model: Model, precision: str) -> dict[str, Array]:
    """Prepare a model for compilation: check that it is static, and make output names unique.

    Open batches, if nothing else is open, become 1; see ``_settle_shapes``.

    Args:
        model: rewritten in place.
        precision: the device's type of f32 variables.

    Returns:
        The initial values of variables that do not start as zeros, in the device's types.

    Raises:
        ModelError: the model is dynamic, an input or output has a type that the device does not
            support, or a variable's initial value depends on inputs or variables.
    """
    try:
        _settle_shapes(model)
        _check_static(model)
        _check_types(model)
        initial = _initial_values(model, precision)
    except CompilerError as error:
        raise ModelError(str(error)) from error
    _tell_outputs_from_inputs(model)
    return initial


def _settle_shapes(model: Model) -> None:
    """Set open batches and channels of convolutions, if that makes the model static.

    Exporters leave open the batch of encoders, and in compressed ones the input channels of
    convolutions. A batch that is not run item by item (``batch``) becomes 1; the filters determine
    the number of channels. genai reshapes models in the same way.

    Dimensions that follow from known shapes are computed as well. Exporters leave these to the
    runtime, e.g. where a tensor is reshaped to the shape of another.

    Args:
        model: changed in place, or left as is.

    Raises:
        CompilerError: the resulting shapes do not fit together.
    """
    opened = {port.name: port.value for port in model.inputs if not is_static(shape_of(port.value))}
    settled = {name: _settled(value) for name, value in opened.items()}
    reads = [each.read.output for each in model.variables() if each.read is not None]
    settles = all(map(is_static, (*settled.values(), *map(shape_of, reads))))
    follows = not all(is_static(shape_of(port.value)) for port in model.outputs)
    if settles and (opened or follows):
        model.set_input_shapes(settled)
        specialize_shapes(model)


def _settled(value: SSAValue) -> Shape:
    """Return an input's shape with the dimensions that can be inferred."""
    shape = [*shape_of(value)]
    if len(shape) > 1 and shape[0] < 0:
        shape[0] = 1
    if len(shape) > 1 and shape[1] < 0:
        users = [use.operation for use in value.uses]
        channels = {shape_of(user.filters)[1] for user in users if isinstance(user, Convolution)}
        shape[1] = channels.pop() if len(channels) == 1 else -1
    return tuple(shape)


def _check_static(model: Model) -> None:
    dynamic = [
        f"{port.name!r} {_dims(port.value)}"
        for port in (*model.inputs, *model.outputs)
        if -1 in shape_of(port.value)
    ]
    for variable in model.variables():
        if variable.read is not None and -1 in shape_of(variable.read.output):
            dynamic.append(f"variable {variable.name!r} {_dims(variable.read.output)}")
    if dynamic:
        raise ModelError(
            f"dynamic shapes: {', '.join(dynamic)}; the NPU runs static models: reshape the model, "
            "or, if it is a stateful language model, set NPU_USE_NPUW and NPUW_LLM to YES"
        )


def _check_types(model: Model) -> None:
    for port in (*model.inputs, *model.outputs):
        element = element_of(port.value)
        if element not in ELEMENT_TYPES:
            raise ModelError(
                f"{port.name!r} is {element}; the NPU's inputs and outputs are "
                f"{', '.join(ELEMENT_TYPES)}; convert it outside of the model"
            )


def _dims(value: SSAValue) -> str:
    return "[" + ",".join("?" if d < 0 else str(d) for d in shape_of(value)) + "]"


def _tell_outputs_from_inputs(model: Model) -> None:
    """Rename outputs that are inputs unchanged: ports are bound by unique names."""
    inputs = {port.name for port in model.inputs}
    outputs = [
        (f"{port.name}/sink_port_0" if port.name in inputs else port.name, port.value)
        for port in model.outputs
    ]
    model.set_outputs(outputs)


def _initial_values(model: Model, precision: str) -> dict[str, Array]:
    starting = [v for v in model.variables() if v.read is not None and v.read.init is not None]
    for variable in starting:
        _check_known(variable)
    if not starting:
        return {}
    clone = model.clone()
    reads = {variable.name: variable.read for variable in clone.variables()}
    inits = [
        (variable.name, read.init)
        for variable in starting
        if (read := reads[variable.name]) is not None and read.init is not None
    ]
    shapes = {name: shape_of(read.output) for name, read in reads.items() if read is not None}
    clone.set_outputs(inits)
    for variable in clone.variables():
        if variable.assign is not None:
            Rewriter.replace_op(variable.assign, [], [variable.assign.value])
    remove_dead_code(clone)
    found = Interpreter(clone).run({port.name: _zeros(port.value) for port in clone.inputs})
    values: dict[str, Array] = {}
    for name, init in inits:
        element, shape = element_of(init), shapes[name]
        if found[name].any():
            stored = precision if element == "f32" else element
            values[name] = _broadcast(name, convert_values(found[name], element, stored), shape)
    return values


def _zeros(value: SSAValue) -> Array:
    return np.zeros([max(d, 0) for d in shape_of(value)], NUMPY[element_of(value)])


def _broadcast(name: str, values: Array, shape: tuple[int, ...]) -> Array:
    if values.shape != shape:
        raise ModelError(f"variable {name!r} is {list(shape)}, but starts as {list(values.shape)}")
    return values


def _check_known(variable: Variable) -> None:
    assert variable.read is not None  # the caller's condition
    assert variable.read.init is not None
    for value in behind([variable.read.init], (ShapeOf, ReadValue)):
        if isinstance(value.owner, Block | ReadValue):
            raise ModelError(
                f"variable {variable.name!r} has an initial value that depends on inputs; use a "
                "constant, and set the value through query_state()"
            )
