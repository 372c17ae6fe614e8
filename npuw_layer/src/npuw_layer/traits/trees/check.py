"""Options that trees of candidates rule out, since rejected candidates must be removable."""

from __future__ import annotations

from collections.abc import Iterable

from npuw_layer.errors import ModelError
from npuw_layer.options import Options
from npuw_layer.tensors.traits import traits
from npuw_layer.traits.trees.names import TREE_MASK


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
