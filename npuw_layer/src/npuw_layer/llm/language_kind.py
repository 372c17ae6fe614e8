"""Kinds of language models, as the main path sees them.

Their records stand in ``npuw_layer.kinds``, where the main path finds them by options;
``kinds.split.SplitKind`` does what a Llama needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from npuw_layer.backends.protocols import LoadedModel

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.llm.plan.lengths import Lengths
    from npuw_layer.llm.plan.stages import Stage
    from npuw_layer.options import Options


class LanguageKind(Protocol):
    """A kind of language model."""

    def requested(self, options: Options) -> str:
        """Return the option that requests this kind; empty if none is set."""
        ...

    def lengths(self, options: Options) -> Lengths | None:
        """Return the lengths of prompts and caches; None for those that options give.

        Raises:
            OptionError: options contradict one another.
        """
        ...

    def prepared(self, model: Model, options: Options) -> Model:
        """Return the graph that stages are made of.

        Args:
            model: as it was read; it may be changed.
            options: of the compilation.

        Raises:
            ModelError: the model is not of this kind.
        """
        ...

    def graph(self, model: Model, stage: Stage, options: Options, check: bool) -> Model:
        """Return the static graph of a stage; parameters and errors as ``stage_graph``."""
        ...

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> bool:
        """Check programs from elsewhere that have no K and V.

        Returns:
            Whether they were such, so that there is nothing more to check.

        Raises:
            BlobError: they are not what they should be.
        """
        ...


def kind_of(options: Options) -> LanguageKind:
    """Return the kind that options request, or that of a Llama."""
    # By name, as kinds stand above this shelf.
    found: LanguageKind = import_module("npuw_layer.kinds.registry").language_kind(options)
    return found
