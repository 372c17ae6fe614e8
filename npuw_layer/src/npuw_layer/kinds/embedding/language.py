"""Models that read texts as a kind of language model: some keep no K and V."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import LoadedModel
from npuw_layer.kinds.embedding.imported_ports import check_whole_ports, keeps_nothing
from npuw_layer.llm.language_kinds import LanguageKind
from npuw_layer.llm.plan.stages import Stage, lengths_of
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.model import Model


class TextReader(LanguageKind):
    """A model that embeds or ranks texts."""

    def takes(self, options: Options) -> bool:
        """Return whether a model is to embed or rank texts."""
        return not options.generates

    def prepared(self, model: Model, options: Options) -> Model:
        """Return a stateful decoder if texts are read in chunks; see ``prepare_text``."""
        # Imported here: a warm start, which compiles nothing, loads no graphs.
        from npuw_layer.kinds.embedding.prepare import prepare_text

        return prepare_text(model, options)

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> bool:
        """Check programs that read texts whole."""
        whole = lengths_of(options).chunk is None and not options.cuts_head
        if not whole or not keeps_nothing(loaded):
            return False
        check_whole_ports(stages, loaded)
        return True


KIND = TextReader()
