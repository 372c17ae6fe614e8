"""Adapters of an LM head that is a model of its own."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model
from npuw_layer.traits.lora.check import check_head_adapters


@dataclass(frozen=True)
class CheckHeadAdapters(ModulePass):
    """Check that the head of several conversations has no adapters.

    Requires: ``head-alone``, which leaves the head's own variables.

    Raises:
        ModelError: it would need each conversation's.
    """

    name = "check-head-adapters"

    conversations: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check the module; it stays as it is."""
        del ctx
        names = (variable.name for variable in Model(op).variables())
        check_head_adapters(names, self.conversations)
