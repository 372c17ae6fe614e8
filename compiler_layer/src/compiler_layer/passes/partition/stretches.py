"""Cuts a model into stretches: so many parts of about as many ops, joined by little.

Ops stand in the order in which results ask for them (``dataflow``), and a stretch is some of them
in a row. So no stretch needs what depends on it, however ops branch: each can run as one. What
converts stays with what it converts for, as in the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.ir import Operation

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.model import Model
from compiler_layer.passes.dataflow import visiting_order
from compiler_layer.passes.partition.parts import Group, fixed_ops


def cut_stretches(model: Model, tag: str, most: int | None = None) -> list[Group]:
    """Let stretches of ops stand alone.

    Args:
        model: static and pure; it is not changed.
        tag: of the groups.
        most: how many stretches there may be; None makes one of each op.

    Returns:
        The groups in the order in which they run. What all of them use, masks and positions, is of
        none.

    Source: NPUW's pipelines INIT and JUST (fact sheet npuw §d); how they grow is our own.
    """
    fixed = fixed_ops(model)
    order = [op for op in visiting_order(model) if op not in fixed]
    places = [0, *(number for number, op in enumerate(order, 1) if not isinstance(op, Convert))]
    cuts = places if most is None else _cuts(places, _living(order), most)
    return [Group(tag, frozenset(order[begin:end])) for begin, end in pairwise(cuts)]


def _living(order: Sequence[Operation]) -> list[int]:
    """For each place between two ops, how many ops before it are used behind it."""
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
    """Where to cut: near even distances, there where the fewest values live.

    Args:
        places: where cuts may be, ascending; the first and the last are among the cuts.
        living: how many values live at each place, from before the first op to behind the last.
        most: into how many stretches.
    """
    inner, end = places[1:-1], places[-1]
    cuts = {places[0], end}
    for number in range(1, most):
        even, reach = number * end / most, end / most / 2
        near = [place for place in inner if even - reach < place <= even + reach]
        if near:
            cuts.add(min(near, key=lambda place: (living[place], abs(place - even))))
    return sorted(cuts)
