"""Passes for models with variables of adapters, which get a static rank and are only read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.model import Model, Variable
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.check_tokens import CheckTokens
from npuw_layer.llm.graph.graph_pass import GraphPass, Placed
from npuw_layer.llm.graph.head_alone import HeadAlone
from npuw_layer.llm.graph.kept_variables import keep_variable
from npuw_layer.llm.graph.stored_rows import read_value
from npuw_layer.llm.graph.vocabulary import RecordVocabulary
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.tensors.names import slot_variable
from npuw_layer.traits.lora.names import AdapterTensor, adapter_name, check_head_adapters


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


def reads_adapters(model: Model) -> bool:
    """Return whether a model has variables of adapters."""
    return any(adapter_name(variable.name) is not None for variable in model.variables())


def _read_slots(model: Model, read: ReadValue, shape: Shape, slots: int) -> None:
    """Replace a variable by one for each slot."""
    g, element = GraphBuilder(model, read), element_of(read.output)
    names = [slot_variable(read.variable_id.data, slot) for slot in range(slots)]
    reads = [read_value(name, element, shape) for name in names]
    for each in reads:
        keep_variable(each)
    read.output.replace_all_uses_with(g.concat([g.add(each).output for each in reads], 0))
    Rewriter.erase_op(read)


def _static(variable: Variable, part: AdapterTensor, rank: int) -> Shape:
    read, assign = variable.read, variable.assign
    if read is None or assign is None or assign.value is not read.output:
        raise ModelError(
            f"adapter state {variable.name!r} is not read and assigned unchanged; insert adapters "
            "by openvino_genai's AdapterConfig"
        )
    shape = shape_of(read.output)
    full = shape[1 - part.rank_axis] if len(shape) == 2 else -1
    if full <= 0:
        raise ModelError(f"adapter state {variable.name!r} has no static width: {list(shape)}")
    return (rank, full) if part.rank_axis == 0 else (full, rank)


@dataclass(frozen=True)
class FixRank(GraphPass):
    """Set static shapes of the variables of adapters.

    Before:  %a = ov.ReadValue "….A" : ?x64 ; ov.Assign "….A"(%a)
    After:   %a = ov.ReadValue "….A" : RANKx64

    The rank is NPUW_LLM_MAX_LORA_RANK. With several slots each conversation has separate
    variables, ``slot_variable`` [1, …], which are joined to a batch, as their matmuls are.

    Raises:
        ModelError: inferences change a variable, or it is not a matrix of known width.
    """

    name = "fix-rank"

    rank: int
    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        shapes = dict[str, Shape]()
        for variable in model.variables():
            name = adapter_name(variable.name)
            if name is None:
                continue
            shape = _static(variable, name.part, self.rank)
            assert variable.read is not None  # _static() has checked it
            assert variable.assign is not None
            Rewriter.replace_op(variable.assign, [], [variable.assign.value])
            if self.slots > 1:
                _read_slots(model, variable.read, (1, *shape), self.slots)
            else:
                keep_variable(variable.read)
                shapes[variable.name] = shape
        model.set_input_shapes(shapes)
