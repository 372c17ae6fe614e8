"""Passes of graph preparation: their form, and the place of those that a trait brings."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model


class GraphPass(ModulePass):
    """A pass that rewrites a model in place; its docstring shows the IR before and after.

    Shapes are not carried through the graph: ``specialize-shapes`` of the compiler does that.
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
    """A pass of a trait, and its place in the list."""

    before: str
    """The name of a core pass; in a list without that pass there is no place for this one."""
    each: ModulePass
    inputs: tuple[str, ...] = ()
    """Inputs of the model that the pass takes care of."""
