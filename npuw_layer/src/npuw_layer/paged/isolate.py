"""Lets attention over caches in pages stand alone; satisfies ``partition.ports.Isolation``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from npuw_layer.paged.attention import PagedAttentionDevice
from npuw_layer.paged.names import TAG
from npuw_layer.ports import Device

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.passes.partition.parts import Group


class PagedAttentions:
    """Each attention of a model is a part of its own, which the host computes."""

    def __init__(self) -> None:
        self.device: Device = PagedAttentionDevice()

    def groups(self, model: Model) -> Sequence[Group]:
        """Find them."""
        # Imported here: a warm start loads no graphs.
        from compiler_layer.dialects.ov.paged_attention import PagedAttentionExtension
        from compiler_layer.passes.partition.parts import Group

        found = [op for op in model.body.ops if isinstance(op, PagedAttentionExtension)]
        return [Group(TAG, frozenset([op])) for op in found]
