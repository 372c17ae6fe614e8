"""Observer of a pipeline: what its runtime shows, and which request has which place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genai_layer.batching.scheduler import Scheduler
from genai_layer.errors import ConfigError, runtime_failures
from genai_layer.observation import (
    BatchingState,
    ObservesBatching,
    PlansPrompts,
    ShowsTimelines,
    TaskSpan,
)
from genai_layer.runtime import CompiledModel


class PipelineObserver:
    """View of a pipeline whose runtime is observable; any thread may use it.

    Args:
        batching: the runtime's batching.
        compiled: its compiled model.
        scheduler: the pipeline's.
    """

    def __init__(
        self, batching: ObservesBatching, compiled: CompiledModel, scheduler: Scheduler
    ) -> None:
        self._batching = batching
        self._compiled = compiled
        self._scheduler = scheduler

    def state(self) -> BatchingState:
        """Return the state of the runtime's batching."""
        return self._batching.observe()

    def requests(self) -> Mapping[int, int]:
        """Return the numbers of the running requests, by the ``id`` of their conversations."""
        return self._scheduler.conversations()

    def plan(
        self, tokens: int, max_prompt_len: int | None, min_response_len: int | None
    ) -> object | None:
        """Return what would run for a prompt; see ``PlansPrompts.plan_prompt``.

        Returns:
            The plan; None if the runtime has none.

        Raises:
            ConfigError: a number is out of range.
        """
        if not isinstance(self._compiled, PlansPrompts):
            return None
        try:
            return self._compiled.plan_prompt(tokens, max_prompt_len, min_response_len)
        except RuntimeError as error:
            raise ConfigError(str(error)) from error

    def timeline(self, program: str) -> Sequence[TaskSpan] | None:
        """Return the tasks of a program, which may take seconds to compute.

        Returns:
            The tasks in the order of their begin; None if the runtime does not know them.

        Raises:
            RuntimeFailure: the device failed.
        """
        if not isinstance(self._compiled, ShowsTimelines):
            return None
        with runtime_failures():
            return self._compiled.timeline(program)
