"""The LM head: the product with the vocabulary, which a prompt needs for its last token alone.

It is the largest matrix of most models. NPUW cuts it off (NPUW_LLM_SHARED_HEAD), so that prefill
and all generate variants share one model for it; or it stays, and computes what is asked for. An
adapter beside it goes where it goes. ChatGLM and its like have hidden states [tokens, 1, channels]
and transpose their logits: between models they are [1, tokens, channels] all the same.

Source: fact sheet npuw §a.3, step 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.elementwise import Binary, Convert, Unary
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.shape import Transpose
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.partition.repeated.attributes import forget_repetitions
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.match import stored_constant
from npuw_layer.errors import NoHead
from npuw_layer.llm.graph.last_token import last_token
from npuw_layer.llm.names import EMBED, LOGITS

_BY_TOKENS = (1, 0, 2)
"""How [1, tokens, channels] and [tokens, 1, channels] become each other."""


class Head(Enum):
    """What a static model does with its LM head."""

    CUT = "cut"
    """It gives out hidden states, and another model makes logits of them."""
    LAST = "last"
    """It computes logits of one token; the host says of which."""
    ALL = "all"
    """It computes logits of all new tokens."""


def treat_head(model: Model, head: Head, tokens: int) -> None:
    """Let a static model end as it should.

    Args:
        model: changed in place; among its outputs are the logits, and only they change. With ALL
            nothing does, and there may be none.
        head: CUT replaces them by EMBED; LAST adds the input LAST_TOKEN, and a product with it,
            unless no head is to be seen: then logits of all tokens are computed.
        tokens: new tokens that the model takes.

    Raises:
        NoHead: it is to be cut off, but the logits are not the product of hidden states.
    """
    if head is Head.ALL:
        return
    logits, others = _told_apart(model)
    if head is Head.CUT:
        ops = _found(logits)
        model.set_outputs([(EMBED, ops.states(ops.before(model))), *others])
        remove_dead_code(model)
        return
    try:
        ops = _found(logits)
    except NoHead:
        return
    which = last_token(model, tokens, element_of(ops.readers[0].a))
    g = ops.before(model)
    ops.read(g, g.matmul(which, ops.states(g), False))
    ops.refresh_types()
    model.refresh_signature()


def cut_head(model: Model, rows: int) -> Model:
    """Make the model of the head alone.

    Args:
        model: the stateful graph; it is not changed.
        rows: hidden states that it takes at a time.

    Returns:
        A graph with EMBED f32 [1, rows, channels] and LOGITS f32 [1, rows, V].

    Raises:
        NoHead: the logits are not the product of hidden states.
    """
    body = model.clone()
    logits, _ = _told_apart(body)
    ops = _found(logits)
    # The states' own width may be computed from their shape; the vocabulary's is known.
    product = ops.readers[0]
    width = shape_of(product.b)[-1 if int_value(product.transpose_b) else -2]
    if width <= 0:
        raise NoHead("the hidden states that the logits are made of have no static width")
    element = element_of(product.a)
    names = [port.name for port in body.inputs]
    states = body.body.insert_arg(tensor(element, (1, rows, width)), len(names))
    ops.read(ops.before(body), states)
    for op in body.ops:
        if isinstance(op, Assign):
            Rewriter.replace_op(op, [], [op.value])
    body.set_inputs([*names, EMBED])
    body.set_outputs([(LOGITS, logits)])
    remove_dead_code(body)
    for name in names:
        body.remove_input(name)
    ops.refresh_types()
    forget_repetitions(body)
    body.refresh_signature()
    return body


def _told_apart(model: Model) -> tuple[SSAValue, list[tuple[str, SSAValue]]]:
    """The logits, and all other outputs by name."""
    others = [(port.name, port.value) for port in model.outputs if port.name != LOGITS]
    return next(port.value for port in model.outputs if port.name == LOGITS), others


@dataclass(frozen=True, slots=True)
class _HeadOps:
    """What makes logits of hidden states."""

    readers: list[MatMul]
    """The products that take them: that with the vocabulary, then an adapter's."""
    after: list[OvOp]
    """What is done to what these make, in an order in which it can be."""
    by_tokens: bool = False
    """Whether they take [tokens, 1, channels], and what they make is transposed after."""

    def before(self, model: Model) -> GraphBuilder:
        """Build what they are to take."""
        return GraphBuilder(model, next(op for op in model.body.ops if op in self.readers))

    def states(self, g: GraphBuilder) -> SSAValue:
        """The hidden states [1, tokens, channels]."""
        return self._turned(g, self.readers[0].a)

    def read(self, g: GraphBuilder, states: SSAValue) -> None:
        """Take other hidden states [1, tokens, channels]; ``refresh_types`` is to follow."""
        taken = self._turned(g, states)
        for product in self.readers:
            product.operands[0] = taken

    def _turned(self, g: GraphBuilder, states: SSAValue) -> SSAValue:
        return g.transpose(states, *_BY_TOKENS) if self.by_tokens else states

    def refresh_types(self) -> None:
        """Infer what is made of them anew; values of before are none any more."""
        for op in (*self.readers, *self.after):
            op.refresh_types()


def _found(logits: SSAValue) -> _HeadOps:
    """Find the head.

    Raises:
        NoHead: the logits are not the product of a hidden state.
    """
    after: list[OvOp] = []
    value = logits
    order = range(len(shape_of(logits)))  # which axis of the value each axis of the logits is
    while isinstance(value.owner, Unary | Binary | Convert | Transpose):
        after.insert(0, value.owner)
        if isinstance(value.owner, Transpose):
            order = _turned_back(order, value.owner)
        computed = _computed(value.owner)
        if len(computed) != 1:
            found = _adapted(computed)
            if found is None:
                break
            return _in_order(_HeadOps(found.readers, [*found.after, *after]), order)
        value = computed[0]
    if not isinstance(value.owner, MatMul):
        raise _no_head()
    return _in_order(_HeadOps([value.owner], after), order)


def _turned_back(order: Sequence[int], op: Transpose) -> list[int]:
    """Which axis of a transposition's operand each axis of the logits is.

    Raises:
        NoHead: they have not as many axes, or the transposition's order is computed.
    """
    turned = ints_of(op.order)
    if turned is None or len(turned) != len(order):
        raise _no_head()
    return [turned[axis] for axis in order]


def _computed(op: OvOp) -> list[SSAValue]:
    """The operands that are no constants."""
    return [value for value in op.operands if stored_constant(value) is None]


def _in_order(ops: _HeadOps, order: Sequence[int]) -> _HeadOps:
    """Say how the hidden states lie, if which axes of the product the logits have tells.

    Raises:
        NoHead: it does not.
    """
    if len(shape_of(ops.readers[0].a)) == len(order) == 3:
        if tuple(order) == (0, 1, 2):
            return ops
        if tuple(order) == _BY_TOKENS:
            return replace(ops, by_tokens=True)
    raise _no_head()


def _no_head() -> NoHead:
    return NoHead("the logits are not the product of a hidden state [1, tokens, channels]")


def _adapted(terms: Sequence[SSAValue]) -> _HeadOps | None:
    """A product and an adapter's, ((x Aᵀ) · alpha) Bᵀ, of the same hidden states, if they are."""
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
                return _HeadOps([product, down], [scale, up]) if known else None
    return None


def _is_variable(value: SSAValue) -> bool:
    """Whether a value is a variable's, or those of several slots joined."""
    owner = value.owner
    if isinstance(owner, Convert | Concat):
        return all(map(_is_variable, owner.operands))
    return isinstance(owner, ReadValue)
