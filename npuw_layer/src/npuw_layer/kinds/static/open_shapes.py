"""Default values of open dimensions; genai reshapes models in the same way.

Exporters leave open the batch of encoders, and in compressed ones the input channels of
convolutions. A batch that is not run item by item (``batch``) becomes 1; the filters determine the
number of channels.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.convolution import Convolution
from compiler_layer.dialects.ov.types import Shape, is_static, shape_of
from compiler_layer.model import Model
from compiler_layer.rewriting.shapes import specialize_shapes


def settle_shapes(model: Model) -> None:
    """Set open batches and channels of convolutions, if that makes the model static.

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
