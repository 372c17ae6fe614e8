"""Places of a batching: caches and models of conversations, which others use again."""

from __future__ import annotations

from collections.abc import Collection

from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.conversation import Conversation


class Places:
    """All places. Only the thread of a step changes them.

    Args:
        compiled: the static models.
        limit: number of places; copies of conversations may have more until they are closed.
    """

    def __init__(self, compiled: CompiledLLM, limit: int) -> None:
        self._compiled = compiled
        self.limit = limit
        self.all: list[Conversation] = []
        """All places; those that no conversation has are free, and are reset before reuse."""

    def unused(self, taken: Collection[Conversation | None]) -> Conversation | None:
        """Return a place that exists and is not taken."""
        return next((place for place in self.all if place not in taken), None)

    def take(self, taken: Collection[Conversation | None]) -> Conversation | None:
        """Return an unused place, a new one if the limit allows; None if all are taken."""
        unused = self.unused(taken)
        return self.make() if unused is None and len(self.all) < self.limit else unused

    def make(self) -> Conversation:
        """Add a place."""
        made = Conversation(self._compiled, _always_wanted)
        self.all.append(made)
        return made

    def free(self, place: Conversation) -> None:
        """Forget the tokens of a place, and the place itself if it exceeds the limit."""
        place.reset()
        if len(self.all) > self.limit:
            self.all.remove(place)


def _always_wanted() -> None:
    """Do nothing: the engine detects closed conversations between a prompt's chunks."""
