"""Inputs that describe padding to the model that reads a text.

The exported model treats all tokens as text: it takes their number from the shape of its input,
which never changes in a static model. So values that the model derives from this shape become
inputs: the mask of attention, and the lengths that recurrent networks read.
"""

from __future__ import annotations

import logging

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.logic import Greater
from compiler_layer.dialects.ov.recurrent import LSTMSequence
from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.types import shape_of, tensor
from compiler_layer.model import Model
from npuw_layer.kinds.kokoro.names import INPUT_IDS, INPUT_LENGTHS, TEXT_MASK

_log = logging.getLogger(__name__)


def give_lengths(model: Model) -> None:
    """Add the inputs that the model can use; the result of a text without padding is unchanged.

    Args:
        model: with the input ``input_ids``, of a static shape; changed in place.
    """
    ids = next(port.value for port in model.inputs if port.name == INPUT_IDS)
    mask = _mask(model, ids)
    if mask is None:
        _log.warning("no padding mask found: padding affects the result")
        return
    mask.output.replace_all_uses_with(model.add_input(TEXT_MASK, tensor("boolean", shape_of(ids))))
    networks = [op for op in model.body.ops if isinstance(op, LSTMSequence)]
    if networks:
        lengths = model.add_input(INPUT_LENGTHS, tensor("i64", (1,)))
        for network in networks:
            network.operands[network.operands.index(network.lengths)] = lengths


def _mask(model: Model, ids: SSAValue) -> Greater | None:
    """Return the comparison of positions with lengths, all derived from the shape of the ids."""
    known: set[SSAValue] = set()
    """Constants, and values that depend only on them and on that shape."""
    of_shape: set[SSAValue] = set()
    for op in model.body.ops:
        follows = any(operand in of_shape for operand in op.operands)
        if isinstance(op, ShapeOf) and op.x is ids:
            follows = True
        elif not all(operand in known for operand in op.operands):
            continue
        known.update(op.results)
        if follows:
            of_shape.update(op.results)
        if follows and isinstance(op, Greater):
            return op
    return None
