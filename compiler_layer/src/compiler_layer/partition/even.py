"""Partition of a model into parts with similar numbers of ops and few values between them.

Ops are sorted in the order in which results need them (``rewriting.dataflow``); a part is a range
of this order. No part needs a value that depends on itself, so each can run as one. A conversion
stays with the op that uses its result, as in NPUW.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from xdsl.ir import Operation

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.model import Model
from compiler_layer.partition.parts import PartOps, fixed_ops
from compiler_layer.rewriting.dataflow import visiting_order


def even_parts(model: Model, tag: str, most: int | None = None) -> list[PartOps]:
    """Choose ranges of ops as parts.

    Args:
        model: static and pure; not changed.
        tag: the tag of the parts.
        most: the maximum number of parts; None makes a part of each op.

    Returns:
        The parts in execution order. They exclude ops that depend on masks and positions alone.

    Source: NPUW's pipelines INIT and JUST (docs/reference/npuw.md#partitioning); the growth of
    parts is our own.
    """
    fixed = fixed_ops(model)
    order = [op for op in visiting_order(model) if op not in fixed]
    places = [0, *(number for number, op in enumerate(order, 1) if not isinstance(op, Convert))]
    cuts = places if most is None else _cuts(places, _living(order), most)
    return [PartOps(tag, frozenset(order[begin:end])) for begin, end in pairwise(cuts)]


def _living(order: Sequence[Operation]) -> list[int]:
    """Return, for each place between two ops, the number of ops before it with uses after it."""
    at = {op: number for number, op in enumerate(order)}
    changes = [0] * (len(order) + 1)
    for op, number in at.items():
        uses = (at.get(use.operation, number) for result in op.results for use in result.uses)
        last = max(uses, default=number)
        if last > number:
            changes[number + 1] += 1
            changes[last + 1] -= 1
    return list(accumulate(changes))


def _cuts(places: Sequence[int], living: Sequence[int], most: int) -> list[int]:
    """Choose cuts near even distances, at the fewest live values.

    Args:
        places: possible cuts, ascending; the first and the last are always chosen.
        living: number of live values at each place, from before the first op to after the last.
        most: the maximum number of parts.
    """
    inner, end = places[1:-1], places[-1]
    cuts = {places[0], end}
    for number in range(1, most):
        even, reach = number * end / most, end / most / 2
        near = [place for place in inner if even - reach < place <= even + reach]
        if near:
            cuts.add(min(near, key=lambda place: (living[place], abs(place - even))))
    return sorted(cuts)
