"""Passes for models with variables of adapters."""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.model import Model
from npuw_layer.llm.graph.head_alone import HeadAlone
from npuw_layer.llm.graph.open_dimensions import SettleDimensions
from npuw_layer.llm.graph.pipeline import Placed
from npuw_layer.llm.graph.vocabulary import TellVocabulary
from npuw_layer.llm.plan.stages import Kind, Stage
from npuw_layer.options import Options
from npuw_layer.traits.lora.fix_rank import FixRank, reads_adapters
from npuw_layer.traits.lora.head_adapters import CheckHeadAdapters


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the passes for a model with variables of adapters."""
    if not reads_adapters(model):
        return ()
    fix_rank = FixRank(options.max_lora_rank, stage.slots)
    if stage.kind is not Kind.HEAD:
        return (Placed(SettleDimensions.name, fix_rank),)
    check = CheckHeadAdapters(max(options.batch_slots))
    return (Placed(HeadAlone.name, fix_rank), Placed(TellVocabulary.name, check))
