"""Views that a runtime offers of itself: optional abilities, each found by ``isinstance``.

The data are read-only and of one moment; they are for people, and no pipeline depends on them. A
runtime without these abilities, such as the real ``openvino``, is not observable.

State of a batching: caches, conversations, memory, and the last step. Plan of a prompt: programs
and bytes of so many tokens. Timelines: times of programs' tasks on the device.

Source: ours; npuw_layer has them.
"""

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


@runtime_checkable
class PlansPrompts(Protocol):
    """Ability of a compiled model: a view of what would run for a prompt."""

    def plan_prompt(
        self, tokens: int, max_prompt_len: int | None = None, min_response_len: int | None = None
    ) -> object:
        """Plan a prompt of a new conversation.

        Args:
            tokens: tokens of the prompt.
            max_prompt_len: tokens of the longest prompt; None for the model's.
            min_response_len: tokens of the response after it; None for the model's.

        Returns:
            The plan, with the attributes of ``serve.observe.schema.Plan``.

        Raises:
            RuntimeError: a number is out of range; the message is for the user.
        """
        ...


class TaskSpan(Protocol):
    """Time in which a unit of the device runs one task of a program."""

    @property
    def engine(self) -> str:
        """Kind of the unit: "DMA", "DPU" or "SHAVE"."""
        ...

    @property
    def name(self) -> str:
        """Operation of the model that the task belongs to."""
        ...

    @property
    def begin_ns(self) -> int:
        """Begin, counted from the start of the program."""
        ...

    @property
    def end_ns(self) -> int:
        """End, counted likewise."""
        ...


@runtime_checkable
class ShowsTimelines(Protocol):
    """Ability of a compiled model: times of its programs' tasks, equal for all runs."""

    def timeline(self, program: str, /) -> Sequence[TaskSpan] | None:
        """Return the tasks of a program in the order of their begin.

        Args:
            program: one of ``ObservedStep.programs``.

        Returns:
            The tasks; None if the device does not know them.

        Raises:
            RuntimeError: there is no such program, or the device failed.
        """
        ...
