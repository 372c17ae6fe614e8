"""LM head: the matmul with the vocabulary, and the ops around it.

The head is the largest matrix of most models, and a prompt needs it only for its last token. An
adapter in parallel with the matmul belongs to the head. ChatGLM and similar models have hidden
states [tokens, 1, channels] and transpose their logits; between static models hidden states are
always [1, tokens, channels].

Source: docs/reference/npuw.md#lm-head.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.elementwise import Binary, Convert, Unary
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.shape import Transpose
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model
from compiler_layer.rewriting.match import stored_constant
from npuw_layer.errors import NoHead
from npuw_layer.tensors.names import LOGITS

_BY_TOKENS = (1, 0, 2)
"""Order of the transposition between [1, tokens, channels] and [tokens, 1, channels]."""


def logits_of(model: Model) -> SSAValue:
    """Return the logits.

    Raises:
        NoHead: the model has no logits.
    """
    for port in model.outputs:
        if port.name == LOGITS:
            return port.value
    raise NoHead(f"the model has no output {LOGITS}")


@dataclass(frozen=True, slots=True)
class HeadOps:
    """Ops that compute logits from hidden states."""

    readers: list[MatMul]
    """Matmuls that read hidden states: the vocabulary's, then an adapter's."""
    after: list[OvOp]
    """Ops after the matmuls, in an order of execution."""
    by_tokens: bool = False
    """True if hidden states are [tokens, 1, channels], and logits are transposed."""

    def before(self, model: Model) -> GraphBuilder:
        """Return a builder at the place before the matmuls."""
        return GraphBuilder(model, next(op for op in model.body.ops if op in self.readers))

    def states(self, g: GraphBuilder) -> SSAValue:
        """Return the hidden states [1, tokens, channels]."""
        return self._turned(g, self.readers[0].a)

    def read(self, g: GraphBuilder, states: SSAValue) -> None:
        """Connect other hidden states [1, tokens, channels]; call ``refresh_types`` afterwards."""
        taken = self._turned(g, states)
        for product in self.readers:
            product.operands[0] = taken

    def _turned(self, g: GraphBuilder, states: SSAValue) -> SSAValue:
        return g.transpose(states, *_BY_TOKENS) if self.by_tokens else states

    def refresh_types(self) -> None:
        """Infer the types of all ops again."""
        for op in (*self.readers, *self.after):
            op.refresh_types()


def find_head(logits: SSAValue) -> HeadOps:
    """Find the ops of the head.

    Raises:
        NoHead: the logits are not a matmul of hidden states.
    """
    after: list[OvOp] = []
    value = logits
    order = range(len(shape_of(logits)))  # for each axis of the logits, its axis in the value
    while isinstance(value.owner, Unary | Binary | Convert | Transpose):
        after.insert(0, value.owner)
        if isinstance(value.owner, Transpose):
            order = _turned_back(order, value.owner)
        computed = [each for each in value.owner.operands if stored_constant(each) is None]
        if len(computed) != 1:
            found = _adapted(computed)
            if found is None:
                break
            return _in_order(HeadOps(found.readers, [*found.after, *after]), order)
        value = computed[0]
    if not isinstance(value.owner, MatMul):
        raise _no_head()
    return _in_order(HeadOps([value.owner], after), order)


def _turned_back(order: Sequence[int], op: Transpose) -> list[int]:
    """Return for each axis of the logits its axis in a transposition's operand.

    Raises:
        NoHead: the ranks differ, or the transposition's order is computed.
    """
    turned = ints_of(op.order)
    if turned is None or len(turned) != len(order):
        raise _no_head()
    return [turned[axis] for axis in order]


def _in_order(ops: HeadOps, order: Sequence[int]) -> HeadOps:
    """Determine the layout of the hidden states from the order of the axes.

    Raises:
        NoHead: the order is not one of the two supported ones.
    """
    if len(shape_of(ops.readers[0].a)) == len(order) == 3:
        if tuple(order) == (0, 1, 2):
            return ops
        if tuple(order) == _BY_TOKENS:
            return replace(ops, by_tokens=True)
    raise _no_head()


def _no_head() -> NoHead:
    return NoHead("the logits are not a matmul of hidden states [1, tokens, channels]")


def _adapted(terms: Sequence[SSAValue]) -> HeadOps | None:
    """Return the matmul and its adapter, ((x Aᵀ) · alpha) Bᵀ, if both read the same states."""
    for product, up in itertools.permutations([term.owner for term in terms], 2):
        if not isinstance(product, MatMul) or not isinstance(up, MatMul):
            continue
        scale = up.a.owner
        if not isinstance(scale, Binary) or not _is_variable(up.b):
            continue
        for value, alpha in itertools.permutations(scale.operands, 2):
            down = value.owner
            if isinstance(down, MatMul) and down.a is product.a:
                known = _is_variable(alpha) and _is_variable(down.b)
                return HeadOps([product, down], [scale, up]) if known else None
    return None


def _is_variable(value: SSAValue) -> bool:
    """Return whether a value is a variable's, or joins those of several slots."""
    owner = value.owner
    if isinstance(owner, Convert | Concat):
        return all(map(_is_variable, owner.operands))
    return isinstance(owner, ReadValue)
