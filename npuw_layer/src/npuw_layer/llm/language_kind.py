"""What a kind of language model may do otherwise than a Llama.

The records of such kinds stand in ``npuw_layer.kinds``, where the main path finds them by options.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import LoadedModel

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.llm.plan.lengths import Lengths
    from npuw_layer.llm.plan.stages import Stage
    from npuw_layer.options import Options


class LanguageKind:
    """A kind of language model; as it stands, a Llama."""

    def requested(self, options: Options) -> str:
        """Return the option that requests this kind; empty if none is set."""
        return ""

    def lengths(self, options: Options) -> Lengths | None:
        """Return the lengths of prompts and caches; None for those that options give.

        Raises:
            OptionError: options contradict one another.
        """
        return None

    def prepared(self, model: Model, options: Options) -> Model:
        """Return the graph that stages are made of.

        Args:
            model: as it was read; it may be changed.
            options: of the compilation.

        Raises:
            ModelError: the model is not of this kind.
        """
        return model

    def graph(self, model: Model, stage: Stage, options: Options, check: bool) -> Model:
        """Return the static graph of a stage; parameters and errors as ``stage_graph``."""
        # Imported here: a warm start, which compiles nothing, loads no graphs.
        from npuw_layer.llm.graph.pipeline import stage_graph

        return stage_graph(model, stage, options, check)

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> bool:
        """Check programs from elsewhere that have no K and V.

        Returns:
            Whether they were such, so that there is nothing more to check.

        Raises:
            BlobError: they are not what they should be.
        """
        return False


def kind_of(options: Options) -> LanguageKind:
    """Return the kind that options request, or that of a Llama."""
    # By name, as kinds stand above this shelf.
    for kind in import_module("npuw_layer.kinds.registry").kinds():
        if isinstance(kind, LanguageKind) and kind.requested(options):
            return kind
    return LanguageKind()
