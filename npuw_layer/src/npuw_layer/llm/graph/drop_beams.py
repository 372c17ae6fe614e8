"""Removal of beam reordering: caches hold one sequence."""

from __future__ import annotations

from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.tensors.names import BEAMS


class DropBeams(GraphPass):
    """Remove the reordering of caches by beam: there is one sequence, at index 0.

    Before:  %p = ov.Gather(ov.ReadValue "0.key", %beam_idx)
    After:   %p = ov.ReadValue "0.key"

    Raises:
        ModelError: an op other than Gather reads beam_idx.
    """

    name = "drop-beams"

    def _rewrite(self, model: Model) -> None:
        beams = model.find_input(BEAMS)
        if beams is None:
            return
        for op in {use.operation: None for use in beams.uses}:
            if not isinstance(op, Gather):
                raise ModelError(f"{BEAMS} is read by {op.name}, which does not reorder caches")
            Rewriter.replace_op(op, [], [op.data])
        model.remove_input(BEAMS)
