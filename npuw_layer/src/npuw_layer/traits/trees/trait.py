"""Trait of Eagle's models: hidden states of a target, and trees of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from npuw_layer.api.model_port import OPEN
from npuw_layer.backends.protocols import READ_PREFIX, Device, LoadedModel, TensorInfo
from npuw_layer.errors import BlobError, ModelError
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.llm.request.history import History
from npuw_layer.llm.trait import ConversationPart, Instance, ModelNames, OpenInput, PairInput
from npuw_layer.options import Options
from npuw_layer.tensors.names import LAST_HIDDEN_STATE
from npuw_layer.tensors.token_inputs import TokenKind
from npuw_layer.tensors.traits import traits
from npuw_layer.traits.graph_trait import GraphTrait
from npuw_layer.traits.trees.candidates import Candidates
from npuw_layer.traits.trees.names import HIDDEN_STATES, INTERNAL_HIDDEN_STATES, TREE_MASK
from npuw_layer.traits.trees.tree_mask import ELEMENTS, TreeMask, tree_shape


class _OfModel(Instance):
    """Tree mask of one model.

    Args:
        mask: mask in the caller's form.
        most: maximum tokens of a step.
    """

    one_row_for = "token trees"

    def __init__(self, mask: TreeMask, most: int) -> None:
        self._mask, self._most = mask, most

    def part(self, device: Device, cache: KVStrategy, history: History) -> ConversationPart:
        """Return the candidates of a conversation, at first empty."""
        return Candidates(cache, history, self._most)

    def pair_inputs(self) -> Sequence[PairInput]:
        """Return the tree mask."""
        return (self._mask,)


class Trees(GraphTrait):
    """Trees of candidates, and the hidden states that Eagle's drafts take."""

    token_kinds: ClassVar[Mapping[str, TokenKind]] = {
        HIDDEN_STATES: TokenKind("f32", 1),
        INTERNAL_HIDDEN_STATES: TokenKind("f32", 1),
    }
    pair_names = (TREE_MASK,)
    last_inputs = (HIDDEN_STATES, INTERNAL_HIDDEN_STATES, TREE_MASK)

    def recognise(self, inputs: Sequence[TensorInfo]) -> Instance | None:
        """Return the instance for a model with a tree mask."""
        for info in inputs:
            if info.name == TREE_MASK:
                return _OfModel(TreeMask(info.element), info.shape[2])
        return None

    def open_inputs(self, info: TensorInfo) -> Sequence[OpenInput] | None:
        """Return the tree mask with the dimensions that the caller chooses open."""
        if info.name != TREE_MASK:
            return None
        return [(TREE_MASK, info.element, (OPEN, 1, OPEN, OPEN))]

    def check_options(self, names: ModelNames, options: Options) -> None:
        """Check that rejected candidates can be removed, and that NPUW_EAGLE fits the model.

        Raises:
            ModelError: candidates cannot be removed, or the model has no hidden states to output.
        """
        if options.eagle and LAST_HIDDEN_STATE not in names.outputs:
            raise ModelError(
                f"NPUW_EAGLE = YES: the model has no output {LAST_HIDDEN_STATE}, which targets and "
                "drafts of Eagle 3 have; leave the option out"
            )
        check_trees(names.inputs, names.variables, options)

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> None:
        """Compare the programs' tree masks with the stages and with one another.

        Raises:
            BlobError: a mask is not that of its stage, or masks differ.
        """
        elements = set[str]()
        for stage, program in zip(stages, loaded, strict=True):
            shapes = {one.name: one.shape for one in program.inputs}
            element = next((one.element for one in program.inputs if one.name == TREE_MASK), "")
            if stage.kind is StageKind.GENERATE:
                elements.add(element)
            if not element:
                continue
            wanted = tree_shape(stage.tokens, stage.past)
            if stage.kind is not StageKind.GENERATE or shapes[TREE_MASK] != wanted:
                raise BlobError(f"{stage.name} has {TREE_MASK} {list(shapes[TREE_MASK])}")
            try:
                check_trees(shapes, (name.removeprefix(READ_PREFIX) for name in shapes), options)
            except ModelError as error:
                raise BlobError(f"{stage.name}: {error}") from None
        if len(elements) > 1 or not elements <= {"", *ELEMENTS}:
            raise BlobError(f"generate models have {TREE_MASK} of {sorted(elements)}")


def check_trees(inputs: Iterable[str], variables: Iterable[str], options: Options) -> None:
    """Check that rejected candidates can be removed, if a model takes trees.

    Args:
        inputs: inputs of the model.
        variables: its caches, and states in place of caches.
        options: options of its compilation.

    Raises:
        ModelError: rejected candidates could not be removed.
    """
    if TREE_MASK not in inputs:
        return
    problem = ""
    if options.on_full != "ERROR":
        problem = (
            f"NPUW_LLM_ON_FULL = {options.on_full}: candidates would take the place of tokens "
            "before they are accepted; use ERROR"
        )
    elif max(options.batch_slots) > 1:
        problem = (
            "NPUW_LLM_BATCH_SLOTS: conversations in a batch generate one token each; leave the "
            "option out"
        )
    elif not options.generates:
        problem = "NPUW_TEXT_EMBED and NPUW_TEXT_RERANK: texts are only read; leave the options out"
    elif any(not one.forgets_tokens and one.owns(v) for v in variables for one in traits()):
        problem = (
            "its layers with a state in place of K and V cannot drop single tokens; export it "
            f"without {TREE_MASK}"
        )
    if problem:
        raise ModelError(f"the model takes trees of candidates ({TREE_MASK}); {problem}")


TRAIT = Trees("trees")
