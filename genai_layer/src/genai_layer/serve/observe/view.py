"""State of a loaded model as JSON, computed once for all clients that watch it."""

from __future__ import annotations

import asyncio
import logging
import math
from weakref import WeakKeyDictionary

from genai_layer.batching.observer import PipelineObserver
from genai_layer.errors import GenAIError
from genai_layer.observation import BatchingState
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.observe.schema import (
    KVState,
    MemoryPart,
    SlotState,
    Speed,
    State,
    StepState,
)
from genai_layer.serve.observe.timelines import StepTime, Timelines

_log = logging.getLogger(__name__)
_FRESH = 1.0
"""Seconds for which a state without a change is not computed again."""


class Views:
    """Views of loaded models; a model that is unloaded leaves none."""

    def __init__(self) -> None:
        self._views = WeakKeyDictionary[ServedTextModel, ModelView]()

    async def json(self, model: ServedTextModel) -> str:
        """Return the state of a model as JSON."""
        view = self._views.get(model)
        if view is None:
            view = self._views[model] = ModelView()
        return await view.json(model)


class ModelView:
    """View of one loaded model, which it does not keep alive; used in the event loop's thread."""

    def __init__(self) -> None:
        self._timelines = Timelines()
        self._lock = asyncio.Lock()
        self._changes = -1
        self._until = 0.0
        self._json = ""

    async def json(self, model: ServedTextModel) -> str:
        """Return the state as JSON, for all clients the same until it changes."""
        async with self._lock:
            now, changes = asyncio.get_running_loop().time(), model.changes
            if changes != self._changes or now >= self._until:
                self._json = (await self._state(model)).model_dump_json()
                self._changes, self._until = changes, now + _FRESH
            return self._json

    async def _state(self, model: ServedTextModel) -> State:
        observer = model.pipeline.get_observer()
        shown = None if observer is None else observer.state()
        last_step = None
        if observer is not None and shown is not None and shown.last_step is not None:
            last_step = StepState.model_validate(shown.last_step)
            time = await self._time(observer, last_step.programs)
            if time is not None:
                last_step.device_us, last_step.engines = time.device_us, time.engines
        slots = [] if observer is None or shown is None else _slots(shown, observer, model)
        return State(
            model=model.name,
            device=model.device,
            observable=shown is not None,
            kv=None if shown is None else KVState.model_validate(shown.kv),
            memory=None if shown is None else _memory(shown),
            slots=slots,
            queue=model.queue,
            queue_limit=model.queue_limit,
            last_step=last_step,
            last_ended=None
            if shown is None or shown.last_ended is None
            else SlotState.model_validate(shown.last_ended),
            speed=_speed(model.last_metrics),
        )

    async def _time(self, observer: PipelineObserver, programs: list[str]) -> StepTime | None:
        """Return the time of a step; None if the runtime does not know it."""
        step = self._timelines.step
        try:
            if self._timelines.known(programs):
                return step(programs, observer.timeline)
            return await asyncio.to_thread(step, programs, observer.timeline)
        except GenAIError as error:
            _log.warning("no timeline of %s: %s", " and ".join(programs), error)
            self._timelines.note_unknown(programs)
            return None


def _memory(shown: BatchingState) -> list[MemoryPart]:
    return [MemoryPart.model_validate(part) for part in shown.memory]


def _slots(
    shown: BatchingState, observer: PipelineObserver, model: ServedTextModel
) -> list[SlotState]:
    """Return the places with the names of their requests."""
    numbers, names = observer.requests(), model.request_ids()
    found: list[SlotState] = []
    for place in shown.places:
        slot = SlotState.model_validate(place)
        number = numbers.get(id(place.conversation))
        slot.request = None if number is None else names.get(number)
        found.append(slot)
    return found


def _speed(metrics: PerfMetrics | None) -> Speed:
    if metrics is None:
        return Speed()
    return Speed(
        ttft_ms=_known(metrics.get_ttft().mean),
        tpot_ms=_known(metrics.get_tpot().mean),
        tokens_per_s=_known(metrics.get_throughput().mean),
    )


def _known(value: float) -> float | None:
    """Return a measured value; None if there was nothing to measure, e.g. with one token."""
    return value if math.isfinite(value) and value > 0 else None
