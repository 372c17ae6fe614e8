"""Comparisons of token indices in place of row indices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import logic, shape
from compiler_layer.model import Model
from npuw_layer.llm.graph.cache_positions import (
    ARITHMETIC,
    index_chain,
    on_tokens,
    replace_by_slot,
)
from npuw_layer.llm.graph.graph_pass import GraphPass


def _compared(model: Model, op: logic.Comparison, past: int, positions: SSAValue) -> SSAValue:
    """Return the comparison of the token indices of one conversation."""
    operands = [on_tokens(model, op, operand, positions, past) for operand in op.operands]
    copy = GraphBuilder(model, op).add(op.clone(dict(zip(op.operands, operands, strict=True))))
    copy.refresh_types()
    return copy.results[0]


def _is_window(op: logic.Comparison) -> bool:
    """Return whether a comparison depends on the distance of rows, not only on their order."""
    chains = [index_chain(operand) for operand in op.operands]
    from_rows = all(chain and isinstance(chain[-1], shape.Range) for chain in chains)
    if from_rows and chains[0][-1] is chains[1][-1]:
        return False  # among new tokens: no cache rows are between them
    return from_rows and any(isinstance(one, ARITHMETIC) for chain in chains for one in chain)


@dataclass(frozen=True)
class CompareTokens(GraphPass):
    """Compare token indices in place of row indices, where arithmetic is involved.

    Before:  %near = ov.Greater(%keys, ov.Subtract(%queries, 512)) ; both are ov.Range over rows
    After:   %near = ov.Greater(%k, ov.Subtract(%q, 512)) ; %q = ov.Reshape(%cache_position)
             %k = ov.Concat([0 … past - 1], %q)

    Exporters number rows: key j is in the window of query i if j > i - W (sliding), or if both have
    are in the same chunk, j // W = i // W (Llama 4). A comparison that merely orders rows
    (causality) stays as it is. A replaced comparison adds the input ``cache_position`` i64 [slots,
    tokens].

    Raises:
        ModelError: the result has no dimension for several conversations.
    Source: NPUW corrects the same defect by patterns for single models (Phi-3's sliding mask).
    """

    name = "compare-tokens"

    tokens: int
    past: int
    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        found = [each for each in model.ops if isinstance(each, logic.Comparison)]
        for window in filter(_is_window, found):
            compared = partial(_compared, model, window, self.past)
            replace_by_slot(model, window, self.tokens, self.slots, compared)
