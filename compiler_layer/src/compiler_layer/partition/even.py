"""Cuts a model into parts of about as many ops each, with few values between them.

Ops stand in the order in which results need them (``rewriting.dataflow``), and a part is a run of
this order. So no part needs a value that depends on it, and each can run as one. A conversion stays
with the op that it converts for, as in the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.ir import Operation

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.model import Model
from compiler_layer.partition.parts import PartOps, fixed_ops
from compiler_layer.rewriting.dataflow import visiting_order


def even_parts(model: Model, tag: str, most: int | None = None) -> list[PartOps]:
    """Choose runs of ops as parts.

    Args:
        model: static and pure; not changed.
        tag: of the parts.
        most: the highest number of parts; None makes a part of each op.

    Returns:
        The parts in the order in which they run. Ops that depend on masks and positions alone are
        in none of them.

    Source: NPUW's pipelines INIT and JUST (fact sheet npuw §d); how they grow is our own.
    """
    fixed = fixed_ops(model)
    order = [op for op in visiting_order(model) if op not in fixed]
    places = [0, *(number for number, op in enumerate(order, 1) if not isinstance(op, Convert))]
    cuts = places if most is None else _cuts(places, _living(order), most)
    return [PartOps(tag, frozenset(order[begin:end])) for begin, end in pairwise(cuts)]


def _living(order: Sequence[Operation]) -> list[int]:
    """Return, for each place between two ops, how many ops before it are used behind it."""
    at = {op: number for number, op in enumerate(order)}
    changes = [0] * (len(order) + 1)
    for op, number in at.items():
        uses = (at.get(use.operation, number) for result in op.results for use in result.uses)
        last = max(uses, default=number)
        if last > number:
            changes[number + 1] += 1
            changes[last + 1] -= 1
    living, total = list[int](), 0
    for change in changes:
        total += change
        living.append(total)
    return living


def _cuts(places: Sequence[int], living: Sequence[int], most: int) -> list[int]:
    """Choose cuts near even distances, where the fewest values live.

    Args:
        places: possible cuts, ascending; the first and the last are always chosen.
        living: number of values that live at each place, before the first op to behind the last.
        most: the highest number of parts.
    """
    inner, end = places[1:-1], places[-1]
    cuts = {places[0], end}
    for number in range(1, most):
        even, reach = number * end / most, end / most / 2
        near = [place for place in inner if even - reach < place <= even + reach]
        if near:
            cuts.add(min(near, key=lambda place: (living[place], abs(place - even))))
    return sorted(cuts)
