"""Caches of one sequence, which no beam reorders."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.llm.names import BEAMS


def drop_beams(model: Model) -> None:
    """Rewrite a model in place; see ``DropBeams``."""
    for port in model.inputs:
        if port.name != BEAMS:
            continue
        for use in list(port.value.uses):
            if not isinstance(use.operation, Gather):
                raise ModelError(f"{BEAMS} is used by {use.operation.name}, not to reorder caches")
            Rewriter.replace_op(use.operation, [], [use.operation.data])
        model.remove_input(BEAMS)


@dataclass(frozen=True)
class DropBeams(ModulePass):
    """Remove the reordering of caches by beam: there is one sequence, at index 0.

    Before:  %p = ov.Gather(ov.ReadValue "0.key", %beam_idx)
    After:   %p = ov.ReadValue "0.key"

    Raises:
        ModelError: beam_idx is read by another op than a Gather.
    """

    name = "drop-beams"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        drop_beams(Model(op))
