"""Section that maps each task of a program to its op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation

from compiler_layer.dialects.npu import Kernel
from compiler_layer.schedule.program import Phase, ScheduledProgram
from compiler_layer.schedule.tasks import CmxBuffer, Task, regions_of
from driver_layer.abi.layer_map import Layer, QueueKey, encode_layer_map


def layer_map(program: ScheduledProgram) -> bytes:
    """Write a program's section."""
    tasks: dict[QueueKey, list[npt.NDArray[np.uint32]]] = {}
    for phase in program.phases:
        for queue, ops in _ops_by_queue(phase).items():
            tasks.setdefault(queue, []).append(ops)
    peaks = _cmx_peaks(program)
    ops = zip(program.layout.ops, peaks, strict=True)
    layers = [Layer(op.name, peak, _kind(op.op)) for op, peak in ops]
    return encode_layer_map(layers, {q: np.concatenate(parts) for q, parts in tasks.items()})


def _kind(op: Operation | None) -> str:
    """Return an op's type; that of a kernel's last op if it computes several."""
    if op is None:
        return "Copy"
    if isinstance(op, Kernel):
        *inside, _ = op.body.block.ops
        op = inside[-1] if inside else op
    return type(op).__name__


def _ops_by_queue(phase: Phase) -> dict[QueueKey, npt.NDArray[np.uint32]]:
    """Return the op numbers of each queue's tasks, run after run."""
    queues: dict[QueueKey, list[int]] = {}
    for task, queue in zip(phase.schedule.tasks, phase.schedule.queues, strict=True):
        queues.setdefault(queue, []).append(task.op)
    begins = np.array([run.ops for run in phase.runs])[:, None]
    return {
        queue: (np.array(ops) + begins).reshape(-1).astype(np.uint32)
        for queue, ops in queues.items()
    }


def _cmx_peaks(program: ScheduledProgram) -> list[int]:
    """Return each op's peak of CMX bytes on one tile."""
    once = [task for phase in program.phases for task in phase.schedule.tasks]
    spans = _cmx_spans(once)
    peaks = [0] * len(program.layout.ops)
    for phase in program.phases:
        for op in {task.op for task in phase.schedule.tasks}:
            peak = _peak(spans[op])
            for run in phase.runs:
                peaks[op + run.ops] = peak
    return peaks


def _cmx_spans(tasks: Sequence[Task]) -> dict[int, dict[CmxBuffer, tuple[int, int]]]:
    """Return the first and the last task that uses each CMX buffer, by op."""
    spans: dict[int, dict[CmxBuffer, tuple[int, int]]] = {}
    for at, task in enumerate(tasks):
        buffers = spans.setdefault(task.op, {})
        for region, _, _ in regions_of(task.work):
            first, _ = buffers.get(region.buffer, (at, at))
            buffers[region.buffer] = (first, at)
    return spans


def _peak(spans: Mapping[CmxBuffer, tuple[int, int]]) -> int:
    """Return the peak of bytes that are live on one tile."""
    events: list[tuple[int, int, int, int]] = []
    for buffer, (first, last) in spans.items():
        for tile in buffer.tiles:
            # At the same task, ends sort after begins: both buffers are live then.
            events.append((tile, first, 0, buffer.nbytes))
            events.append((tile, last, 1, -buffer.nbytes))
    peak = held = 0
    for _, _, _, change in sorted(events):
        held += change
        peak = max(peak, held)
    return peak
