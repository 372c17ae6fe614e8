"""Base of the passes of graph preparation, and the placement of traits' passes."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model


class GraphPass(ModulePass):
    """A pass that rewrites a model in place; the docstring shows the IR before and after.

    Passes do not propagate shapes through the graph; the compiler's ``specialize-shapes`` does.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        self._rewrite(Model(op))

    @abstractmethod
    def _rewrite(self, model: Model) -> None:
        """Rewrite a model in place."""
        ...


class Placed(NamedTuple):
    """A pass of a trait, and its place in the pipeline."""

    before: str
    """Name of the core pass to precede; a pipeline without that pass omits this one."""
    each: ModulePass
    inputs: tuple[str, ...] = ()
    """Inputs of the model that the pass handles."""
