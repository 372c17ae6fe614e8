"""The ``fold-blocks`` pass: of a repeated block the first and the last repetition stay.

compare   whether two stretches of the graph are the same block
find      the block that is repeated
names     how the names of ops count layers
reduce    the model without the repetitions in between
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model
from compiler_layer.passes.dataflow import visiting_order
from compiler_layer.passes.fold_blocks.find import MIN_REPETITIONS, find_repetitions
from compiler_layer.passes.fold_blocks.reduce import CannotReduce, reduced


def folded(model: Model, both_first: bool = False) -> Model | None:
    """Copy a model with the first and the last repetition of its block alone.

    Args:
        model: it is not changed.
        both_first: whether the second repetition stays, too: so it can be seen how one follows
            another even if the last one ends otherwise.

    Returns:
        None if it repeats nothing, or nothing would be left out.
    """
    order = visiting_order(model)
    found = find_repetitions(order)
    if found is None or found.count < MIN_REPETITIONS + both_first:
        return None
    try:
        return reduced(model, order, found, both_first)
    except CannotReduce:
        return None


@dataclass(frozen=True)
class FoldBlocks(ModulePass):
    """Leaves of a repeated block the first and the last repetition; the rest is remembered.

    Before:  %1 = block(%0, w0); %2 = block(%1, w1); %3 = block(%2, w2); %4 = block(%3, w3)
    After:   %1 = block(%0, w0); %4 = block(%1, w3)       with all weights in the constants
             func.func @main … attributes {ov.repetitions = 4}

    What comes after sees a model of two layers. The scheduler finds both again in what has become
    of them, and emits the first one once for each repetition, with its weights and variables.
    Blocks are equal if their ops are, whatever their names; weights and variables may differ, and
    values may come from the repetition before or from outside. Models that repeat nothing at least
    three times stay as they are.
    """

    name = "fold-blocks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        smaller = folded(model)
        if smaller is not None:
            model.main.body.erase_block(model.body)
            smaller.main.body.move_blocks(model.main.body)
            model.main.attributes.update(smaller.main.attributes)
            model.main.properties.update(smaller.main.properties)
