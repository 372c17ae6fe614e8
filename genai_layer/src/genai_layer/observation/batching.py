"""State of a batching: caches, conversations, memory, and the last step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


class ObservedPlace(Protocol):
    """Place of a conversation in a batching; its other attributes are those of ``SlotState``."""

    @property
    def conversation(self) -> object | None:
        """Result of ``Batching.open`` that has the place."""
        ...


class BatchingState(Protocol):
    """State of a batching; ``serve.observe.schema`` has the attributes of its parts."""

    @property
    def kv(self) -> object:
        """Lengths and sizes, equal for all places: ``KVState``."""
        ...

    @property
    def memory(self) -> Sequence[object]:
        """Memory in use: ``MemoryPart``."""
        ...

    @property
    def places(self) -> Sequence[ObservedPlace]:
        """All places, free ones included."""
        ...

    @property
    def last_step(self) -> object | None:
        """Last step that ran programs: ``StepState``."""
        ...

    @property
    def last_ended(self) -> ObservedPlace | None:
        """Conversation that ended last, as it was then: it may have begun and ended unseen."""
        ...


@runtime_checkable
class ObservesBatching(Protocol):
    """Ability of a batching: a view of its state."""

    def observe(self) -> BatchingState:
        """Return the state; any thread may call this, and a step in progress goes on."""
        ...
