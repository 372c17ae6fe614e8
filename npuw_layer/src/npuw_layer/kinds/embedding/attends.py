"""Visible positions of each token, found by computing the masks of any exporter.

Chunks are exact if each token attends to all tokens before it and to none behind, and nothing is
added to the scores. NPUW assumes this of any model that repeats heads of K. Here each
model is checked, so a bidirectional model (EmbeddingGemma, NV-Embed) is never read as causal.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import values_of
from compiler_layer.dialects.ov.elementwise import Add, Subtract
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import INTEGERS, NUMPY
from compiler_layer.errors import CompilerError
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.rewriting.dead_code import remove_dead_code
from npuw_layer.backends.protocols import Array
from npuw_layer.llm.graph.computed import behind
from npuw_layer.tensors.names import IDS, MASK

_TOKENS = 12
"""Length of the text that masks are computed for."""

_PADDING = (3, 11)
"""Masked-out tokens of the text: one between others, and the last."""

_HIDDEN = -1e4
"""Upper bound of mask values that hide a position, in f16, too."""


def is_causal(model: Model, attention: ScaledDotProductAttention) -> bool:
    """Return whether each token attends to exactly itself and the tokens before, without padding.

    Args:
        model: a stateless graph with input_ids and attention_mask [batch, tokens].
        attention: an attention op of the graph.
    """
    if int_value(attention.causal):
        return True
    mask = attention.mask
    if mask is None or isinstance(mask.owner, Block):
        return False
    if any(_is_offset(value.owner) for value in behind([mask])):
        return False
    try:
        values = _computed(model, mask)
    except CompilerError:
        return False
    wanted = np.tri(_TOKENS, dtype=np.bool_)
    wanted[:, _PADDING] = False
    try:
        values = np.broadcast_to(values, (1, 1, _TOKENS, _TOKENS))
    except ValueError:
        return False  # each head has its own mask
    lets_pass = values if values.dtype == np.bool_ else values > _HIDDEN
    plain = values.dtype == np.bool_ or not values[lets_pass].any()
    rows = [row for row in range(_TOKENS) if row not in _PADDING]
    return plain and np.array_equal(lets_pass[0, 0, rows], wanted[rows])


def _is_offset(op: Operation | Block) -> bool:
    """Return whether an op offsets token indices, as sliding windows of any length do."""
    if not isinstance(op, Add | Subtract) or element_of(op.output) not in INTEGERS:
        return False
    known = [values for each in op.operands if (values := values_of(each)) is not None]
    return any((np.abs(values.astype(np.int64)) > 1).any() for values in known)


def _computed(model: Model, mask: SSAValue) -> Array:
    """Return the values of a mask for a short text."""
    clone = model.clone()
    ops = model.ops
    assert isinstance(mask.owner, Operation)  # the caller has checked it
    made = clone.ops[ops.index(mask.owner)]
    clone.set_outputs([("mask", made.results[mask.owner.results.index(mask)])])
    remove_dead_code(clone)
    given = {
        port.name: np.zeros((1, _TOKENS), NUMPY[element_of(port.value)]) for port in clone.inputs
    }
    given[IDS][:] = np.arange(_TOKENS) % 2
    given[MASK][:] = 1
    given[MASK][0, _PADDING] = 0
    return Interpreter(clone).run(given)["mask"]
