"""Mixtures whose experts are added one by one, as ``passes.dense_experts`` writes them.

    %hits = ov.Equal(%ids, e)                                                  [T, K]
    %y = expert(%x) * ov.ReduceSum(ov.Select(%hits, %w, 0))                    [T, H]
    %sum1 = ov.Add(%sum, ov.Select(ov.ReduceLogicalOr(%hits), %y, 0))

If K is 1, no selection may be needed: a token's only weight is that of its expert.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.constant import int_of, values_of
from compiler_layer.dialects.ov.elementwise import Add, Select
from compiler_layer.dialects.ov.logic import Equal
from compiler_layer.dialects.ov.reduce import ReduceLogicalOr, ReduceSum
from compiler_layer.dialects.ov.types import element_of, is_static, shape_of
from compiler_layer.elements import INTEGERS
from compiler_layer.model import Model
from compiler_layer.partition.mixtures.mixture import Mixture
from compiler_layer.partition.mixtures.rows import RowWalk
from compiler_layer.rewriting.match import RESHAPES, owner_of

OpT = TypeVar("OpT", bound=Operation)


@dataclass(frozen=True, eq=False, slots=True)
class _Link:
    """Addend of one expert."""

    expert: int
    hits: Equal
    routed: ReduceLogicalOr
    own: Select
    add: Add

    @property
    def ops(self) -> set[Operation]:
        """Set of the ops that choose tokens and add rows."""
        return {self.hits, self.routed, self.own, self.add}


def chained_mixtures(model: Model) -> Iterator[Mixture]:
    """Yield the chained mixtures of a model."""
    chains: dict[SSAValue, dict[int, _Link]] = {}
    for op in model.body.ops:
        link = _link(op) if isinstance(op, Equal) else None
        if link is not None:
            chains.setdefault(link.hits.a, {})[link.expert] = link
    for links in chains.values():
        found = _mixture(list(links.values()))
        if found is not None:
            yield found


def _link(op: Equal) -> _Link | None:
    """Recognise the addend of one expert from its comparison of ids."""
    shape, number = shape_of(op.a), values_of(op.b)
    if element_of(op.a) not in INTEGERS or len(shape) != 2 or not is_static(shape):
        return None
    if number is None or number.size != 1:
        return None
    routed = _user(op.output, ReduceLogicalOr)
    own = _user(routed.output, Select) if routed is not None else None
    add = _user(own.output, Add) if own is not None else None
    if routed is None or own is None or add is None:
        return None
    if own.condition is not routed.output or not _is_zero(own.otherwise):
        return None
    return _Link(int_of(op.b) or 0, op, routed, own, add)


def _user(value: SSAValue, kind: type[OpT]) -> OpT | None:
    """Return the only op of a class that uses a value, or None."""
    users = [use.operation for use in value.uses if isinstance(use.operation, kind)]
    return users[0] if len(users) == 1 else None


def _is_zero(value: SSAValue) -> bool:
    values = values_of(value)
    return values is not None and not values.any()


def _mixture(links: Sequence[_Link]) -> Mixture | None:
    """Join links, in the order of the graph, to a mixture; return None if they do not form one."""
    ids = links[0].hits.a
    if not _is_sum(links):
        return None
    found = [_Term.of(link) for link in links]
    terms = [term for term in found if term is not None]
    sources = {source for term in terms for source in term.walk.sources}
    weights = {term.weights for term in terms if term.weights is not None}
    columns = {term.column for term in terms if term.column is not None}
    if shape_of(ids)[1] == 1 and not weights:
        weights = columns = {source for source in sources if shape_of(source)[-1] == 1}
        sources -= weights
    if len(terms) < len(links) or len(sources) != 1 or len(weights) != 1:
        return None
    return Mixture(
        rows=sources.pop(),
        ids=ids,
        weights=next(iter(weights)),
        output=links[-1].add.output,
        terms={link.expert: link.own.then for link in links},
        columns=frozenset(columns),
        stacked=False,
        ops=frozenset(op for each in (*links, *terms) for op in each.ops),
    )


def _is_sum(links: Sequence[_Link]) -> bool:
    """Return whether the links form one sum: a chain of adds from zero, without other uses."""
    first = links[0]
    others = [x for x in first.add.operands if x is not first.own.output]
    chained = all(
        set(after.add.operands) == {before.add.output, after.own.output}
        and before.add.output.has_one_use()
        for before, after in pairwise(links)
    )
    used_once = all(link.own.output.has_one_use() for link in links)
    return chained and used_once and len(others) == 1 and _is_zero(others[0])


@dataclass(frozen=True, eq=False, slots=True)
class _Term:
    """Ops that compute one expert's rows.

    Attributes:
        walk: the walk from the term to the rows of all tokens.
        column: the expert's weight for each token, [T, 1]; None if it is not selected.
        weights: the weights that the column is selected from.
        selecting: the selecting ops.
    """

    walk: RowWalk
    column: SSAValue | None
    weights: SSAValue | None
    selecting: frozenset[Operation]

    @property
    def ops(self) -> set[Operation]:
        """Set of all ops of the term."""
        return {*self.walk.ops, *self.selecting}

    @staticmethod
    def of(link: _Link) -> _Term | None:
        """Trace the rows of a link; return None if an op mixes rows or is not supported."""
        private = _private(link.own)
        select = _user(link.hits.output, Select)
        total = _user(select.output, ReduceSum) if select is not None else None
        column = weights = None
        selecting: set[Operation] = set()
        if select is not None and total is not None:
            if not _selects_weights(link.hits, select, total):
                return None
            column, weights = total.output, select.then
            selecting |= {select, total}
            while isinstance(op := owner_of(weights), RESHAPES) and op in private:
                selecting.add(op)
                weights = op.x
        columns = () if column is None else (column,)
        walk = RowWalk(shape_of(link.hits.a)[0], 0, lambda x: owner_of(x) not in private, columns)
        if not walk.visit(link.own.then):
            return None
        return _Term(walk, column, weights, frozenset(selecting))


def _selects_weights(hits: Equal, select: Select, total: ReduceSum) -> bool:
    """Return whether the sum is over the slots of a token, with at most one non-zero slot."""
    tokens, slots = shape_of(hits.output)
    axis = int_of(total.axes) if values_of(total.axes) is not None else None
    return (
        select.condition is hits.output
        and _is_zero(select.otherwise)
        and shape_of(select.then) == shape_of(select.output) == (tokens, slots)
        and axis in (1, -1)
        and math.prod(shape_of(total.output)) == tokens
    )


def _private(last: Operation) -> set[Operation]:
    """Return the ops whose results only an op needs, directly or indirectly."""
    found, left = {last}, dict[Operation, int]()
    waiting = [last]
    while waiting:
        for operand in waiting.pop().operands:
            op = owner_of(operand)
            if op is None or op in found:
                continue
            uses = sum(len(list(result.uses)) for result in op.results)
            left[op] = left.get(op, uses) - 1
            if not left[op]:
                found.add(op)
                waiting.append(op)
    return found
