"""Lets compute blocks be submodels of their own that run in tiles, where options ask for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import PartOps


class RowBlocks:
    """Finds blocks of what works row by row; satisfies ``execution.partition.ports.Isolation``.

    Args:
        device: runs them.
        tag: what they are called.
        wanted: kind and name of each choice of ops that blocks grow around.
        others: those of ops that are isolated otherwise.
    """

    def __init__(
        self,
        device: Device,
        tag: str,
        wanted: Sequence[tuple[str, str]],
        others: Sequence[tuple[str, str]],
    ) -> None:
        self.device = device
        self._tag = tag
        self._wanted = wanted
        self._others = others

    def groups(self, model: Model) -> Sequence[PartOps]:
        """Find them; what mixes rows, but is chosen, stands alone."""
        # Imported here: a warm start loads no graphs.
        from compiler_layer.partition.row_parts import row_parts
        from npuw_layer.execution.partition.patterns import chosen, single_ops

        seeds = [op for group in single_ops(model, self._tag, self._wanted) for op in group.ops]
        others = {op for kind, name in self._others for op in chosen(model, kind, name)}
        return row_parts(model, self._tag, seeds, others)
