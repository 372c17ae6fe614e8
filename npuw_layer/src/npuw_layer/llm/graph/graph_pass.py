"""Base of the passes of graph preparation, and the placement of traits' passes.

Passes do not propagate shapes through the graph; the compiler's ``specialize-shapes`` does.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.passes import ModulePass

from compiler_layer.rewriting.graph_pass import GraphPass

__all__ = ["GraphPass", "Placed"]


class Placed(NamedTuple):
    """A pass of a trait, and its place in the pipeline."""

    before: str
    """Name of the core pass to precede; a pipeline without that pass omits this one."""
    each: ModulePass
    inputs: tuple[str, ...] = ()
    """Inputs of the model that the pass handles."""
