"""Passes for models with variables of adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler_layer.model import Model
from npuw_layer.llm.graph.check_tokens import CheckTokens
from npuw_layer.llm.graph.graph_pass import GraphPass, Placed
from npuw_layer.llm.graph.head_alone import HeadAlone
from npuw_layer.llm.graph.vocabulary import RecordVocabulary
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.traits.lora.fix_rank import FixRank, reads_adapters
from npuw_layer.traits.lora.names import check_head_adapters


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the passes for a model with variables of adapters."""
    if not reads_adapters(model):
        return ()
    fix_rank = FixRank(options.max_lora_rank, stage.slots)
    if stage.kind is not StageKind.HEAD:
        return (Placed(CheckTokens.name, fix_rank),)
    check = CheckHeadAdapters(max(options.batch_slots))
    return (Placed(HeadAlone.name, fix_rank), Placed(RecordVocabulary.name, check))


@dataclass(frozen=True)
class CheckHeadAdapters(GraphPass):
    """Check that the LM head of several conversations has no adapters.

    Requires: ``head-alone``, which leaves the head's own variables.

    Raises:
        ModelError: the head would need the adapter of each conversation.
    """

    name = "check-head-adapters"

    conversations: int = 1

    def _rewrite(self, model: Model) -> None:
        names = (variable.name for variable in model.variables())
        check_head_adapters(names, self.conversations)
