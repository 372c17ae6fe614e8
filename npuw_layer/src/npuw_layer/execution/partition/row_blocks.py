"""Isolation of compute blocks as submodels that run in token tiles, where options request it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import PartOps


class RowBlocks:
    """Isolation of row-wise blocks; satisfies ``execution.partition.ports.Isolation``.

    Args:
        device: runs the blocks.
        tag: tag of the blocks.
        requested: kind and name of each choice of ops that blocks grow around.
        others: kind and name of ops that other isolations select.
    """

    def __init__(
        self,
        device: Device,
        tag: str,
        requested: Sequence[tuple[str, str]],
        others: Sequence[tuple[str, str]],
    ) -> None:
        self.device = device
        self._tag = tag
        self._wanted = requested
        self._others = others

    def groups(self, model: Model) -> Sequence[PartOps]:
        """Find the blocks; a chosen op that mixes rows is a separate group."""
        # Imported here: a warm start loads no graphs.
        from compiler_layer.partition.row_parts import row_parts
        from npuw_layer.execution.partition.patterns import chosen, single_ops

        seeds = [op for group in single_ops(model, self._tag, self._wanted) for op in group.ops]
        others = {op for kind, name in self._others for op in chosen(model, kind, name)}
        return row_parts(model, self._tag, seeds, others)
