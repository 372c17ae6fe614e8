"""Protocol of language model kinds, as the main path uses them.

Implementations are in ``npuw_layer.kinds``, where options select one;
``kinds.split.SplitKind`` implements a Llama.
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
        """Return the lengths of prompts and caches; None if options alone determine them.

        Raises:
            OptionError: options contradict one another.
        """
        ...

    def prepared(self, model: Model, options: Options) -> Model:
        """Return the graph that stages are made from.

        Args:
            model: the model as read; it may be changed in place.
            options: options of the compilation.

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
        """Check imported programs without K and V.

        Returns:
            True if the programs have no K and V, so that no further check is needed.

        Raises:
            BlobError: the programs are not those of the stages.
        """
        ...


def kind_of(options: Options) -> LanguageKind:
    """Return the kind that options request; by default that of a Llama."""
    # Imported by name: kinds are a layer above this package.
    found: LanguageKind = import_module("npuw_layer.kinds.registry").language_kind(options)
    return found
