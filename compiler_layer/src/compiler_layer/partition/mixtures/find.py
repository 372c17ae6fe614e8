"""Finds the mixtures of a graph, however the exporter wrote them."""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.indexing import TopK
from compiler_layer.model import Model
from compiler_layer.partition.mixtures.chained import chained_mixtures
from compiler_layer.partition.mixtures.mixture import Mixture
from compiler_layer.partition.mixtures.rows import owner_of
from compiler_layer.partition.mixtures.stacked import stacked_mixtures
from compiler_layer.rewriting.match import producer


def find_mixtures(model: Model) -> list[Mixture]:
    """Find the mixtures of experts of a graph, in its order.

    Args:
        model: static, as ``pipeline.lower_graph`` leaves it; not changed. Inputs named as ids are
            believed to be different for a token, as they are where a router's TopK chose them.

    Returns:
        Those that are recognised; of others every token goes through every expert.
    """
    found = [*chained_mixtures(model), *stacked_mixtures(model)]
    order = {op: index for index, op in enumerate(model.body.ops)}
    chosen = [mixture for mixture in found if _are_distinct(mixture.ids)]
    return sorted(chosen, key=lambda mixture: max(order[op] for op in mixture.ops))


def _are_distinct(ids: SSAValue) -> bool:
    """Whether a token has no expert twice: TopK does not give one twice."""
    convert = producer(ids, Convert)
    while convert is not None:
        ids = convert.x
        convert = producer(ids, Convert)
    largest = producer(ids, TopK)
    return owner_of(ids) is None or (largest is not None and ids is largest.indices)
