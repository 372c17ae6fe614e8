"""Checks of options and of imported programs: rejected candidates must be removable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from npuw_layer.backends.protocols import READ_PREFIX, LoadedModel
from npuw_layer.errors import BlobError, ModelError
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.tensors.traits import traits
from npuw_layer.traits.trees.names import TREE_MASK
from npuw_layer.traits.trees.tree_mask import ELEMENTS, tree_shape


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


def check_tree_masks(
    stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
) -> None:
    """Compare the programs' tree masks with the stages and with one another.

    Args:
        stages: expected stages of the programs; all of a model's, or some.
        loaded: the programs.
        options: options that the model was compiled with.

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
