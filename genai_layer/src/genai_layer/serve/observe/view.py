"""State of a loaded model as JSON, computed once for all clients that watch it.

Tasks of a step on the device are shown engine by engine, joined to spans that a picture can show. A
program's tasks do not change, so its spans are computed once. The programs of a step run one after
the other.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from genai_layer.batching.observer import PipelineObserver
from genai_layer.errors import GenAIError
from genai_layer.observation import BatchingState, TaskSpan
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.observe.schema import (
    EngineSpan,
    EngineTime,
    KVState,
    MemoryPart,
    SlotState,
    Speed,
    State,
    StepState,
)

_log = logging.getLogger(__name__)

MOST_SPANS = 200
"""Spans of an engine in one step; neighbours with the smallest gaps are joined beyond that."""

Timeline = Callable[[str], Sequence[TaskSpan] | None]
"""Returns the tasks of a program; None if the device does not know them."""


@dataclass(frozen=True, slots=True)
class Span:
    """Time in which an engine is busy, in nanoseconds, with the longest task's operation."""

    begin: int
    end: int
    name: str
    longest: int

    def joined(self, later: Span) -> Span:
        """Return one span for this one and a later one."""
        chief = max(self, later, key=lambda span: span.longest)
        return Span(self.begin, max(self.end, later.end), chief.name, chief.longest)

    def moved(self, offset: int) -> Span:
        """Return the span at a later time."""
        return Span(self.begin + offset, self.end + offset, self.name, self.longest)


@dataclass(frozen=True, slots=True)
class StepTime:
    """Modelled time of a step's programs, and the work of each kind of engine."""

    device_us: float
    engines: list[EngineTime]


class Timelines:
    """Times of one model's programs and steps, computed on first use."""

    def __init__(self) -> None:
        self._programs: dict[str, dict[str, list[Span]] | None] = {}
        self._steps: dict[tuple[str, ...], StepTime | None] = {}

    def known(self, programs: Sequence[str]) -> bool:
        """Return whether the time of a step is computed already."""
        return tuple(programs) in self._steps

    def note_unknown(self, programs: Sequence[str]) -> None:
        """Note that the time of a step cannot be computed."""
        self._steps[tuple(programs)] = None

    def step(self, programs: Sequence[str], timeline: Timeline) -> StepTime | None:
        """Return the time of a step; None if the device does not know all of its programs.

        Args:
            programs: the step's programs, in order.
            timeline: returns the tasks of a program; it may take seconds.
        """
        key = tuple(programs)
        if key not in self._steps:
            self._steps[key] = self._computed(programs, timeline)
        return self._steps[key]

    def _computed(self, programs: Sequence[str], timeline: Timeline) -> StepTime | None:
        begin, engines = 0, dict[str, list[Span]]()
        for program in programs:
            if program not in self._programs:
                tasks = timeline(program)
                self._programs[program] = None if tasks is None else by_engine(tasks)
            found = self._programs[program]
            if found is None:
                return None
            for engine, spans in found.items():
                engines.setdefault(engine, []).extend(span.moved(begin) for span in spans)
            begin += max((spans[-1].end for spans in found.values()), default=0)
        return StepTime(begin / 1000, [_shown(*each) for each in sorted(engines.items())])


def by_engine(tasks: Iterable[TaskSpan]) -> dict[str, list[Span]]:
    """Return the spans in which each kind of engine is busy, ascending, without overlap.

    Args:
        tasks: tasks in the order of their begin.
    """
    found: dict[str, list[Span]] = {}
    for task in tasks:
        spans = found.setdefault(task.engine, [])
        span = Span(task.begin_ns, task.end_ns, task.name, task.end_ns - task.begin_ns)
        last = spans[-1] if spans else None
        overlaps = last is not None and span.begin < last.end
        continues = last is not None and span.begin == last.end and span.name == last.name
        if last is not None and (overlaps or continues):
            spans[-1] = last.joined(span)
        else:
            spans.append(span)
    return found


def fewer(spans: Sequence[Span], most: int) -> list[Span]:
    """Join neighbours with the smallest gaps, until there are at most so many spans."""
    surplus = len(spans) - most
    if surplus <= 0:
        return [*spans]
    gaps = [spans[n + 1].begin - spans[n].end for n in range(len(spans) - 1)]
    closed = {*sorted(range(len(gaps)), key=gaps.__getitem__)[:surplus]}
    found = [spans[0]]
    for number, span in enumerate(spans[1:]):
        if number in closed:
            found[-1] = found[-1].joined(span)
        else:
            found.append(span)
    return found


def _shown(engine: str, spans: Sequence[Span]) -> EngineTime:
    busy = sum(span.end - span.begin for span in spans) / 1000
    shown = [
        EngineSpan(begin_us=span.begin / 1000, end_us=span.end / 1000, name=span.name)
        for span in fewer(spans, MOST_SPANS)
    ]
    return EngineTime(engine=engine, busy_us=busy, spans=shown)


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
            max_tokens=model.max_tokens,
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
