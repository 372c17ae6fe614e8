"""Base classes of passes: rewrites of a complete graph, and of each op of some classes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code


class GraphPass(ModulePass):
    """A pass that rewrites a model in place; the docstring shows the IR before and after."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        self._rewrite(Model(op))

    @abstractmethod
    def _rewrite(self, model: Model) -> None:
        """Rewrite a model in place."""
        ...


class OpPass(GraphPass):
    """A pass that rewrites the ops of some classes, one by one, and removes ops left unused."""

    rewrites: ClassVar[Sequence[tuple[type[Operation], Callable[[Any], None]]]]
    """Classes of ops, each with the function that rewrites such an op in place, or leaves it."""

    def _rewrite(self, model: Model) -> None:
        found = False
        for op in model.ops:
            for kind, rewrite in self.rewrites:
                if isinstance(op, kind):
                    rewrite(op)
                    found = True
        if found:
            remove_dead_code(model)
