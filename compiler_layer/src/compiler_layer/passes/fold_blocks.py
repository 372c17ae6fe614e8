"""Folding of repeated blocks to their first and last repetition."""

from __future__ import annotations

from compiler_layer.model import Model
from compiler_layer.partition.repeated.fold import folded
from compiler_layer.rewriting.graph_pass import GraphPass


class FoldBlocks(GraphPass):
    """Fold a repeated block: keep its first and last repetition, and record the others.

    Before:  %1 = block(%0, w0); %2 = block(%1, w1); %3 = block(%2, w2); %4 = block(%3, w3)
    After:   %1 = block(%0, w0); %4 = block(%1, w3)       with all weights in the constants
             func.func @main … attributes {ov.repetitions = 4}

    Later passes see a model of two layers. The scheduler finds both layers again in the lowered
    ops, and emits the first one once for each repetition, with that repetition's weights and
    variables. Blocks are equal if their ops are, whatever their names; weights and variables may
    differ, and values may come from the repetition before or from outside. Models without a block
    that repeats at least three times stay unchanged.
    """

    name = "fold-blocks"

    def _rewrite(self, model: Model) -> None:
        smaller = folded(model)
        if smaller is not None:
            model.main.body.erase_block(model.body)
            smaller.main.body.move_blocks(model.main.body)
            model.main.attributes.update(smaller.main.attributes)
            model.main.properties.update(smaller.main.properties)
