"""Mixtures whose weights are stacked over experts, as the current exporter writes them.

%all = ov.Broadcast(%x)                                                 [E, T, C]
%y = experts(%all)                        ov.MatMul with weights        [E, N, C], …
%scores = ov.ScatterElementsUpdate(zeros, %ids, %w) {axis = 1}          [T, E]
%sum = ov.ReduceSum(%y * ov.Transpose(%scores), 0)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import int_of, ints_of, values_of
from compiler_layer.dialects.ov.elementwise import Multiply
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.reduce import ReduceSum
from compiler_layer.dialects.ov.scatter import ScatterElementsUpdate
from compiler_layer.dialects.ov.shape import Broadcast, Transpose
from compiler_layer.dialects.ov.types import Shape, is_static, shape_of
from compiler_layer.elements import Array
from compiler_layer.model import Model
from compiler_layer.partition.mixtures.mixture import Mixture
from compiler_layer.partition.mixtures.routing import computed
from compiler_layer.partition.mixtures.rows import RowWalk
from compiler_layer.rewriting.match import RESHAPES, producer

_MOVING = RESHAPES | Transpose


def stacked_mixtures(model: Model) -> Iterator[Mixture]:
    """Yield the stacked mixtures of a model."""
    for op in model.body.ops:
        found = _mixture(op) if isinstance(op, ScatterElementsUpdate) else None
        if found is not None:
            yield found


def _mixture(scores: ScatterElementsUpdate) -> Mixture | None:
    if not _is_scores(scores):
        return None
    tokens, experts = shape_of(scores.output)
    column, moving = _column(scores)
    product = column.get_user_of_unique_use() if column is not None else None
    if column is None or not isinstance(product, Multiply):
        return None
    last, summing = _sum(product, (experts, tokens))
    walk = RowWalk(tokens, experts, lambda x: producer(x, Broadcast) is not None, {column})
    if last is None or not walk.visit(product.output) or len(walk.sources) != 1:
        return None
    copies = producer(walk.sources.pop(), Broadcast)
    if copies is None or not _copies_rows(copies, tokens):
        return None
    ops = frozenset({scores, *moving, *summing, last, copies, *walk.ops})
    if any(use.operation not in ops for op in ops - {last} for x in op.results for use in x.uses):
        return None
    return Mixture(
        rows=copies.x,
        ids=scores.indices,
        weights=scores.updates,
        output=last.output,
        terms=dict.fromkeys(range(experts), product.output),
        columns=frozenset({column}),
        stacked=True,
        ops=ops,
    )


def _is_scores(op: ScatterElementsUpdate) -> bool:
    """Return whether an op scatters the weights of chosen experts into zeros, [T, E]."""
    data, shape = values_of(op.data), shape_of(op.output)
    return (
        is_static(shape)
        and len(shape) == 2
        and shape[1] > 1
        and shape_of(op.indices) == shape_of(op.updates)
        and shape_of(op.indices)[0] == shape[0]
        and op.reduction.data == "none"
        and values_of(op.axis) is not None
        and int_of(op.axis) in (1, -1)
        and data is not None
        and not data.any()
    )


def _column(scores: ScatterElementsUpdate) -> tuple[SSAValue | None, list[OvOp]]:
    """Return the scores by expert and token, [E, T, 1, …], and the ops that transpose them."""
    value, tokens, experts = scores.output, *shape_of(scores.output)
    order: Array = np.arange(tokens * experts).reshape(tokens, experts)
    turned = order.T
    moving: list[OvOp] = []
    while isinstance(op := value.get_user_of_unique_use(), _MOVING):
        others = [values_of(x) for x in op.operands[1:]]
        moved = computed(op, [order, *(x for x in others if x is not None)])
        if moved is None or any(x is None for x in others):
            break
        moving.append(op)
        value, order = op.results[0], moved[0]
    in_order = order.shape[:2] == turned.shape and math.prod(order.shape[2:]) == 1
    same = in_order and np.array_equal(order.reshape(turned.shape), turned)
    return (value if same else None), moving


def _sum(product: Multiply, leading: Shape) -> tuple[ReduceSum | None, list[OvOp]]:
    """Return the sum over experts of the weighted rows, and the reshapes before the sum."""
    between: list[OvOp] = []
    last = product.output.get_user_of_unique_use()
    while isinstance(last, RESHAPES) and shape_of(last.output)[:2] == leading:
        between.append(last)
        last = last.output.get_user_of_unique_use()
    if not isinstance(last, ReduceSum) or shape_of(last.x)[:2] != leading:
        return None, between
    known = values_of(last.axes) is not None
    return (last if known and ints_of(last.axes) == [0] else None), between


def _copies_rows(op: Broadcast, tokens: int) -> bool:
    """Return whether an op repeats all rows unchanged, one copy after the other."""
    rows, copies = shape_of(op.x), shape_of(op.output)
    while rows[:1] == (1,):
        rows = rows[1:]
    count = math.prod(shape_of(op.x)) // copies[-1]
    return count == tokens and copies[len(copies) - len(rows) :] == rows
