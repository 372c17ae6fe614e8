"""Record of the static models that a conversation runs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.request.conversation import Conversation


@contextmanager
def noting(place: Conversation, ran: list[Stage]) -> Generator[None]:
    """Add the static models that a conversation runs in the context, prefill models first."""
    counts, others = place.reader.prefill.counts, place.reader.ran
    chunks_before, others_before = len(counts.chunks), len(others)
    try:
        yield
    finally:
        # A new prompt, and a new inference, begin with records of their own.
        now, last = place.reader.prefill.counts, place.reader.ran
        chunks = now.chunks[chunks_before if now is counts else 0 :]
        ran += [chunk.stage for chunk in chunks]
        ran += last[others_before if last is others else 0 :]
