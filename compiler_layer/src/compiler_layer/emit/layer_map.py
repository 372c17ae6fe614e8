"""Says which operation each task of a schedule belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler_layer.schedule.barriers import Schedule
from compiler_layer.schedule.layout import Layout
from compiler_layer.schedule.tasks import CmxBuffer, Task, regions_of
from driver_layer.abi.layer_map import Layer, QueueKey, encode_layer_map


def layer_map(layout: Layout, schedule: Schedule) -> bytes:
    """Write the section of a program."""
    tasks: dict[QueueKey, list[int]] = {}
    for task, queue in zip(schedule.tasks, schedule.queues, strict=True):
        tasks.setdefault(queue, []).append(task.op)
    peaks = _cmx_peaks(len(layout.ops), schedule.tasks)
    layers = [Layer(op.name, peak) for op, peak in zip(layout.ops, peaks, strict=True)]
    return encode_layer_map(layers, tasks)


def _cmx_peaks(count: int, tasks: Sequence[Task]) -> list[int]:
    """For each operation the most bytes of one tile that its buffers hold at a time."""
    spans: list[dict[CmxBuffer, tuple[int, int]]] = [{} for _ in range(count)]
    for at, task in enumerate(tasks):
        for region, _, _ in regions_of(task.work):
            first, _ = spans[task.op].get(region.buffer, (at, at))
            spans[task.op][region.buffer] = (first, at)
    return [_peak(buffers) for buffers in spans]


def _peak(spans: Mapping[CmxBuffer, tuple[int, int]]) -> int:
    """Walk through the beginnings and ends of lives, tile by tile."""
    events: list[tuple[int, int, int, int]] = []
    for buffer, (first, last) in spans.items():
        for tile in buffer.tiles:
            # Ends come after beginnings at the same task: both buffers are there then.
            events.append((tile, first, 0, buffer.nbytes))
            events.append((tile, last, 1, -buffer.nbytes))
    peak = held = 0
    for _, _, _, change in sorted(events):
        held += change
        peak = max(peak, held)
    return peak
