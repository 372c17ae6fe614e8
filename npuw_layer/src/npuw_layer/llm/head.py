"""The LM head: the product with the vocabulary, which a prompt needs for its last token alone.

It is the largest matrix of most models. NPUW cuts it off (NPUW_LLM_SHARED_HEAD), so that prefill
and all generate variants share one model for it; or it stays, and computes what is asked for. An
adapter beside it goes where it goes.

Source: fact sheet npuw §a.3, step 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Binary, Convert, Unary
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.passes.match import stored_constant
from compiler_layer.passes.remove_dead_code import remove_dead_code
from compiler_layer.repetition import forget_repetitions
from npuw_layer.errors import NoHead
from npuw_layer.llm.last_token import last_token
from npuw_layer.llm.names import EMBED, LOGITS


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
        model.set_outputs([(EMBED, _found(logits).states), *others])
        remove_dead_code(model)
        return
    try:
        ops = _found(logits)
    except NoHead:
        return
    which = last_token(model, tokens, element_of(ops.states))
    first = next(op for op in model.body.ops if op in ops.readers)
    ops.read(GraphBuilder(model, first).matmul(which, ops.states, False))
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
    ops.read(states)
    for op in list(body.body.ops):
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

    @property
    def states(self) -> SSAValue:
        """The hidden states."""
        return self.readers[0].a

    def read(self, states: SSAValue) -> None:
        """Take other hidden states; ``refresh_types`` is to follow."""
        for product in self.readers:
            product.operands[0] = states

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
    while isinstance(value.owner, Unary | Binary | Convert):
        after.insert(0, value.owner)
        computed = [v for v in value.owner.operands if stored_constant(v) is None]
        if len(computed) != 1:
            adapted = _adapted(computed)
            if adapted is not None:
                return _HeadOps(adapted.readers, [*adapted.after, *after])
            break
        value = computed[0]
    head = value.owner
    if not isinstance(head, MatMul) or len(shape_of(head.a)) != 3:
        raise NoHead("the logits are not the product of a hidden state [1, tokens, channels]")
    return _HeadOps([head], after)


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
