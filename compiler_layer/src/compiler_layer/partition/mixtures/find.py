"""Search for mixtures of experts in all forms that exporters write."""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.model import Model
from compiler_layer.partition.mixtures.chained import chained_mixtures
from compiler_layer.partition.mixtures.mixture import Mixture
from compiler_layer.partition.mixtures.routing import topk_of
from compiler_layer.partition.mixtures.stacked import stacked_mixtures
from compiler_layer.rewriting.match import owner_of, unconverted


def find_mixtures(model: Model) -> list[Mixture]:
    """Return the mixtures of experts recognised in a graph, in graph order.

    Args:
        model: static, a result of ``pipeline.lower_graph``; not changed. If the ids are inputs of
            the model, each token's are assumed to be distinct, as a router's TopK makes them.
    """
    found = [*chained_mixtures(model), *stacked_mixtures(model)]
    order = {op: index for index, op in enumerate(model.body.ops)}
    chosen = [mixture for mixture in found if _are_distinct(mixture.ids)]
    return sorted(chosen, key=lambda mixture: max(order[op] for op in mixture.ops))


def _are_distinct(ids: SSAValue) -> bool:
    """Return whether no token has an expert twice; the ids of a TopK are distinct."""
    return owner_of(unconverted(ids)) is None or topk_of(ids) is not None
