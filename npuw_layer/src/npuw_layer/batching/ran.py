"""Record of the static models that a conversation runs."""

from __future__ import annotations

from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.request.conversation import Conversation


class Noting:
    """Context that adds the static models that a conversation runs in it, prefill models first.

    Args:
        place: the conversation.
        ran: list that the models are added to.
    """

    __slots__ = ("_chunks", "_counts", "_others", "_place", "_ran", "_ran_before")

    def __init__(self, place: Conversation, ran: list[Stage]) -> None:
        self._place, self._ran = place, ran
        self._counts, self._others = place.reader.prefill.counts, place.reader.ran
        self._chunks, self._ran_before = len(self._counts.chunks), len(self._others)

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """Add the models, also after an error."""
        # A new prompt, and a new inference, begin with records of their own.
        counts, others = self._place.reader.prefill.counts, self._place.reader.ran
        chunks = counts.chunks[self._chunks if counts is self._counts else 0 :]
        self._ran += [chunk.stage for chunk in chunks]
        self._ran += others[self._ran_before if others is self._others else 0 :]
