"""Checks that only generate programs of an imported model take the tree mask."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.backends.protocols import READ_PREFIX, LoadedModel
from npuw_layer.errors import BlobError, ModelError
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.traits.trees.check import check_trees
from npuw_layer.traits.trees.names import TREE_MASK
from npuw_layer.traits.trees.tree_mask import ELEMENTS, tree_shape


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
