"""Lets what the host computes stand alone; both satisfy ``execution.partition.ports.Isolation``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.protocols import Device
from npuw_layer.kinds.paged.attention import PagedAttentionDevice
from npuw_layer.kinds.paged.names import SAMPLED, SAMPLED_TAG, TAG

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.passes.partition.parts import Group


class PagedAttentions:
    """Each attention of a model is a part of its own."""

    def __init__(self) -> None:
        self.device: Device = PagedAttentionDevice()

    def groups(self, model: Model) -> Sequence[Group]:
        """Find them."""
        # Imported here: a warm start loads no graphs.
        from compiler_layer.dialects.ov.paged_attention import PagedAttentionExtension
        from compiler_layer.passes.partition.parts import Group

        found = [op for op in model.body.ops if isinstance(op, PagedAttentionExtension)]
        return [Group(TAG, frozenset([op])) for op in found]


class SampledTokens:
    """So is what picks the rows of sampled tokens: an NPU looks up rows of constants alone."""

    def __init__(self) -> None:
        self.device: Device = InterpreterDevice()

    def groups(self, model: Model) -> Sequence[Group]:
        """Find them."""
        from compiler_layer.passes.partition.parts import Group

        sampled = [port.value for port in model.inputs if port.name == SAMPLED]
        found = dict.fromkeys(use.operation for value in sampled for use in value.uses)
        return [Group(SAMPLED_TAG, frozenset([op])) for op in found]
