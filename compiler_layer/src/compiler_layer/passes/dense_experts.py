"""Dense execution of mixtures of experts: every token through every expert, in static shapes."""

from __future__ import annotations

import math
from collections.abc import Container

import numpy as np
from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.constant import Constant, constant_of, int_of
from compiler_layer.dialects.ov.elementwise import Add, Convert, Multiply, Select, Subtract
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.indexing import NonZero, TopK
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import OvOp, bool_attr, int_value
from compiler_layer.dialects.ov.reduce import ReduceSum
from compiler_layer.dialects.ov.scatter import ScatterElementsUpdate
from compiler_layer.dialects.ov.shape import Broadcast, Reshape, Squeeze, Transpose, Unsqueeze
from compiler_layer.dialects.ov.slicing import Split, VariadicSplit
from compiler_layer.dialects.ov.types import Shape, element_of, is_static, shape_of
from compiler_layer.elements import NUMPY, Array
from compiler_layer.errors import RUN_ON_CPU, CompilerUsageError, UnsupportedModel
from compiler_layer.model import Model
from compiler_layer.partition.mixtures.routing import Router, Routing, computed
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.match import ELEMENTWISE, RESHAPES, owner_of
from compiler_layer.rewriting.replace import insert_before, replace, reshape_before
from compiler_layer.rewriting.shapes import first_open

_NUMBERS = (
    *(Add, Subtract, Multiply, Convert, Gather),
    *(Reshape, Squeeze, Unsqueeze, Transpose, Split, VariadicSplit),
)
"""Ops that graphs apply to the token and slot indices of pairs."""


class _Densifier:
    """Rewriter of one model.

    A value with a row for each pair of an expert, ``[N, …]``, has a counterpart with a row for each
    token, ``[T, …]``: the values that a pair of that token would have.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._router = Router()
        self._numbers: dict[SSAValue, tuple[Routing, Array]] = {}
        self._dense: dict[SSAValue, tuple[Routing, SSAValue]] = {}

    def run(self) -> None:
        for op in self._model.ops:
            if isinstance(op, NonZero):
                routing = self._router.routing(op)
                if routing is not None:
                    self._numbers[op.output] = routing, routing.listed
            elif isinstance(op, OvOp):
                routing = self._routing(op)
                if routing is not None:
                    self._carry(op, routing)
        remove_dead_code(self._model)

    def _routing(self, op: OvOp) -> Routing | None:
        """Return the routing whose pairs an op computes with, if it is exactly one."""
        found = [self._numbers.get(x) or self._dense.get(x) for x in op.operands]
        routings = {one[0] for one in found if one is not None}
        return routings.pop() if len(routings) == 1 else None

    def _carry(self, op: OvOp, routing: Routing) -> None:
        rows = [x in self._dense for x in op.operands]
        if isinstance(op, ScatterElementsUpdate):
            self._combine(op, routing)
        elif isinstance(op, Gather) and op.indices in self._numbers and not any(rows):
            self._look_up(op, routing)
        elif any(rows):
            self._compute(op, routing)
        else:
            self._count(op, routing)

    def _count(self, op: OvOp, routing: Routing) -> None:
        """Compute the indices of pairs."""
        if isinstance(op, Broadcast) and shape_of(op.output)[:1] == (-1,):
            # Repeated along other dimensions, for a scatter of complete rows.
            self._numbers[op.output] = self._numbers[op.x]
            return
        if not isinstance(op, _NUMBERS):
            return
        values: list[Array] = []
        for operand in op.operands:
            constant = constant_of(operand)
            known = constant.load() if constant and not constant.is_repeated else None
            if operand not in self._numbers and known is None:
                return
            values.append(self._numbers[operand][1] if known is None else known)
        for result, array in zip(op.results, computed(op, values) or (), strict=False):
            self._numbers[result] = routing, array

    def _look_up(self, op: Gather, routing: Routing) -> None:
        """Replace a gather by token by all rows, and one by token and slot by weights or zeros."""
        numbers, shape = self._numbers[op.indices][1].reshape(-1), shape_of(op.data)
        tokens, slots = routing.token_count, routing.slot_count
        if op.known_axis() != 0 or int_value(op.batch_dims) or op.data in self._numbers:
            return
        if shape[0] == tokens and np.array_equal(numbers, routing.tokens):
            self._keep(op, routing, op.data)
        elif shape[0] == math.prod(shape) == tokens * slots and np.array_equal(
            numbers, routing.tokens * slots + routing.slots
        ):
            weights = reshape_before(op, op.data, (tokens, slots))
            own = insert_before(op, Select.make([routing.hits, weights, _zero(op, weights)]))
            last = insert_before(op, Constant.inline(np.array([-1], np.int64)))
            summed = ReduceSum.make([own, last], keep_dims=bool_attr(True))
            self._keep(op, routing, insert_before(op, summed))

    def _keep(self, op: Gather, routing: Routing, value: SSAValue) -> None:
        """Record a value, in the gather's shape, as the gather's counterpart."""
        shape = _with_tokens(op.output, routing)
        if shape is not None and math.prod(shape) == math.prod(shape_of(value)):
            same = shape_of(value) == shape
            self._dense[op.output] = routing, value if same else reshape_before(op, value, shape)

    def _compute(self, op: OvOp, routing: Routing) -> None:
        """Compute for each token what an op computes for each pair, if pairs are independent."""
        rows = {x: self._dense[x][1] for x in op.operands if x in self._dense}
        if any(x in self._numbers for x in op.operands) or not _is_by_row(op, rows):
            return
        if isinstance(op, Broadcast):
            self._dense[op.output] = self._dense[op.x]
            return
        copy = op.clone(rows)
        insert_before(op, copy)
        copy.refresh_types()
        if shape_of(copy.results[0]) == _with_tokens(op.results[0], routing):
            self._dense[op.results[0]] = routing, copy.results[0]

    def _combine(self, op: ScatterElementsUpdate, routing: Routing) -> None:
        """Add an expert's results for its tokens, and zero for other tokens."""
        adds = op.reduction.data == "sum" and int_value(op.use_init_val) and int_of(op.axis) == 0
        numbers, updates = self._numbers.get(op.indices), self._dense.get(op.updates)
        if not adds or numbers is None or updates is None:
            return
        by_row = numbers[1].shape == (len(routing.tokens), 1)
        if not by_row or not np.array_equal(numbers[1][:, 0], routing.tokens):
            return
        value = updates[1]
        if value.type != op.output.type:
            return
        own = insert_before(op, Select.make([routing.routed, value, _zero(op, value)]))
        replace(op, Add.make([op.data, own]))


def _zero(place: OvOp, like: SSAValue) -> SSAValue:
    element = element_of(like)
    return insert_before(place, Constant.inline(np.zeros((), NUMPY[element]), element))


def _row_axis(value: SSAValue) -> int | None:
    """Return the dimension that counts pairs: the only dynamic one."""
    shape = shape_of(value)
    return shape.index(-1) if shape.count(-1) == 1 else None


def _with_tokens(value: SSAValue, routing: Routing) -> Shape | None:
    """Return the shape of a value's counterpart."""
    axis, shape = _row_axis(value), shape_of(value)
    return None if axis is None else (*shape[:axis], routing.token_count, *shape[axis + 1 :])


def _is_by_row(op: OvOp, rows: Container[SSAValue]) -> bool:
    """Return whether each row of the result depends only on the same row of ``rows``."""
    axis = _row_axis(op.results[0])
    if axis is None:
        return False
    if isinstance(op, RESHAPES):
        return _surroundings(op.operands[0]) == _surroundings(op.results[0])
    if isinstance(op, Broadcast):
        return op.x.type == op.output.type
    if isinstance(op, MatMul):
        return _multiplies_rows(op, axis) and op.b not in rows
    if not isinstance(op, ELEMENTWISE):
        return False
    rank = len(shape_of(op.results[0]))
    for operand in op.operands:
        shape = (1,) * (rank - len(shape_of(operand))) + shape_of(operand)
        if shape[axis] != (-1 if operand in rows else 1):
            return False
    return True


def _surroundings(value: SSAValue) -> tuple[int, int] | None:
    """Return the number of elements before and after the rows' dimension."""
    axis, shape = _row_axis(value), shape_of(value)
    return None if axis is None else (math.prod(shape[:axis]), math.prod(shape[axis + 1 :]))


def _multiplies_rows(op: MatMul, axis: int) -> bool:
    """Return whether a matmul multiplies rows with a single matrix."""
    a, b = shape_of(op.a), shape_of(op.b)
    one_matrix = 2 <= len(b) <= len(a) and all(d == 1 for d in b[:-2])
    return one_matrix and not int_value(op.transpose_a) and axis < len(a) - 1


_REMEDY = (
    f"mixtures such as those of Mixtral, Qwen2-MoE, Qwen3-MoE and DBRX are supported; {RUN_ON_CPU}"
)


def _mixture_refusal(op: OvOp) -> str | None:
    """Return why a mixture of experts is not supported; None if an op belongs to no mixture.

    Args:
        op: the first op of a graph whose shape depends on the data.
    """
    if not _follows_choice(op) or not _reaches_experts(op):
        return None
    problem = (
        "its experts' tokens do not follow from one TopK, or are not computed one by one and added"
        if isinstance(op, NonZero)
        else "its tokens are sorted by expert, and cut at data-dependent places"
    )
    return f"mixture of experts at {op.described}: {problem}; {_REMEDY}"


def _follows_choice(op: Operation) -> bool:
    """Return whether an op depends on a TopK without a matmul in between, as a router's choice."""
    waiting, seen = [op], {op}
    while waiting:
        for value in waiting.pop().operands:
            maker = owner_of(value)
            if isinstance(maker, TopK):
                return True
            if maker is not None and maker not in seen and not isinstance(maker, MatMul):
                seen.add(maker)
                waiting.append(maker)
    return False


def _reaches_experts(op: Operation) -> bool:
    """Return whether data-dependent rows reach a matmul, or are scattered back among the tokens."""
    waiting: list[SSAValue] = [*op.results]
    seen: set[Operation] = set()
    while waiting:
        for use in waiting.pop().uses:
            user = use.operation
            if isinstance(user, MatMul | ScatterElementsUpdate):
                return True
            if user not in seen:
                seen.add(user)
                waiting += [x for x in user.results if not is_static(shape_of(x))]
    return False


class DenseExperts(GraphPass):
    """Run every token through every expert of a mixture, so that all shapes are static.

    Before:  %pairs = ov.NonZero(%one_hot[e])                      [2, N]: N depends on the data
             %y = experts[e](ov.Gather(%x, %pairs.token)) * ov.Gather(%w, %pairs)        [N, H]
             %sum1 = ov.ScatterElementsUpdate(%sum, %pairs.token, %y) {reduction = "sum"}
    After:   %hits = ov.Equal(%ids, e)                                                  [T, K]
             %y = experts[e](%x) * ov.ReduceSum(ov.Select(%hits, %w, 0))                [T, H]
             %sum1 = ov.Add(%sum, ov.Select(ov.ReduceLogicalOr(%hits), %y, 0))

    The sums are the same, in the same order. The cost: with E experts, K of them chosen per token,
    a prompt takes E / K times the arithmetic, and a single token reads the weights of all experts
    instead of K. A static schedule cannot skip some of its tasks.

    An expert may compute anything, as long as the rows of its tokens stay independent.

    Requires: ``specialize-shapes``.

    Raises:
        UnsupportedModel: a mixture of experts has another form.
        CompilerUsageError: another shape that depends on the data is left.
    """

    name = "dense-experts"

    def _rewrite(self, model: Model) -> None:
        _Densifier(model).run()
        left = first_open(model)
        if left is None:
            return
        why = _mixture_refusal(left)
        if why is not None:
            raise UnsupportedModel(why)
        raise CompilerUsageError(f"{left.described}: its shape depends on the data")
