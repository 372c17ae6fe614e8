"""Kinds of language models that are split, or read, otherwise than a Llama.

Such a kind has a module ``language`` in its folder of ``npuw_layer.kinds``, with a record ``KIND``
that overrides what is different. The record is found by the options that select the kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import LoadedModel

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.llm.plan.lengths import Lengths
    from npuw_layer.llm.plan.stages import Stage
    from npuw_layer.options import Options

_HOME = "npuw_layer.kinds"
_MODULE = "language"


class LanguageKind:
    """A kind of language model; as it stands, a Llama."""

    def takes(self, options: Options) -> bool:
        """Return whether options select the kind."""
        return True

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
    """Return the kind that options select."""
    return next(kind for kind in (*_kinds(), LanguageKind()) if kind.takes(options))


@cache
def _kinds() -> tuple[LanguageKind, ...]:
    home = importlib.import_module(_HOME)
    files = sorted(file for path in home.__path__ for file in Path(path).glob(f"*/{_MODULE}.py"))
    names = [f"{_HOME}.{file.parent.name}.{_MODULE}" for file in files]
    return tuple(importlib.import_module(name).KIND for name in names)
