"""Shapes that a model leaves open, where there is one sensible choice: what genai reshapes, too.

Exporters leave the batch of encoders open, and of compressed ones the channels of what a
convolution takes. A batch that is not run item by item (``batch``) is one of one; and filters know
how many channels they have.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.convolution import Convolution
from compiler_layer.dialects.ov.types import Shape, is_static, shape_of
from compiler_layer.model import Model
from compiler_layer.rewriting.shapes import specialize_shapes


def settle_shapes(model: Model) -> None:
    """Make a model static, if no more than batches and channels of convolutions are open.

    What follows from shapes that are known is computed as well: exporters leave that to who runs
    the model, e.g. where tensors are reshaped to what others are.

    Args:
        model: changed in place, or left as it is.

    Raises:
        CompilerError: its shapes do not fit together then.
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
    """An input's shape, with what is known of it."""
    shape = [*shape_of(value)]
    if len(shape) > 1 and shape[0] < 0:
        shape[0] = 1
    if len(shape) > 1 and shape[1] < 0:
        users = [use.operation for use in value.uses]
        channels = {shape_of(user.filters)[1] for user in users if isinstance(user, Convolution)}
        shape[1] = channels.pop() if len(channels) == 1 else -1
    return tuple(shape)
