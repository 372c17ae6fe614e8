"""Parts of a model that the host computes: attention, and the selection of sampled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.execution.partition.ports import Isolation
from npuw_layer.kinds.paged.attention import PagedAttentionDevice
from npuw_layer.kinds.paged.names import SAMPLED, SAMPLED_TAG, TAG

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import PartOps


def _attentions(model: Model) -> Sequence[PartOps]:
    """Return one part for each attention."""
    # Imported here: a warm start loads no graphs.
    from compiler_layer.dialects.ov.paged_attention import PagedAttentionExtension
    from compiler_layer.partition.parts import PartOps

    found = [op for op in model.body.ops if isinstance(op, PagedAttentionExtension)]
    return [PartOps(TAG, frozenset([op])) for op in found]


def _sampled(model: Model) -> Sequence[PartOps]:
    """Return one part for each op that selects sampled rows, as an NPU looks up only constants."""
    from compiler_layer.partition.parts import PartOps

    sampled = [port.value for port in model.inputs if port.name == SAMPLED]
    found = dict.fromkeys(use.operation for value in sampled for use in value.uses)
    return [PartOps(SAMPLED_TAG, frozenset([op])) for op in found]


def isolations() -> Mapping[str, Isolation]:
    """Return the isolations of host parts, by tag."""
    return {
        TAG: Isolation(PagedAttentionDevice(), _attentions),
        SAMPLED_TAG: Isolation(InterpreterDevice(), _sampled),
    }
