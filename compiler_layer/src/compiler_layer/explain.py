"""Costs of a blob by the model's operations: tasks, CMX, bytes, MACs, predicted time.

The blob is the only source: its layer map assigns tasks to operations, descriptors state the
transfers and computations, and the cost model with the barriers determines the times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compiler_layer.errors import BadModel, CompilerUsageError
from driver_layer.abi.layer_map import SECTION_NAME, LayerMap, LayerMapError
from driver_layer.abi.platforms import platform_of
from driver_layer.errors import DriverError, PlatformError
from driver_layer.loader.ops import read_layer_map
from driver_layer.loader.read import Blob, read_blob
from driver_layer.npu.program import queue_name
from driver_layer.npu.timeline import Engine, TaskTime, predict


@dataclass(frozen=True, slots=True)
class LayerCost:
    """Cost of the tasks that one operation, or a group of equal ones, was compiled to."""

    name: str
    count: int
    """Number of operations."""
    transfers: int
    products: int
    invocations: int
    """Number of DMA, DPU and SHAVE tasks (``transfers``, ``products``, ``invocations``)."""
    cmx_bytes: int
    """Maximum that one of the operations holds on a tile."""
    ddr_bytes: int
    """Bytes read from and written to DDR."""
    macs: int
    busy_ns: float
    """Sum of the durations of the tasks, each running alone; engines run concurrently."""
    span_ns: float
    """Time from the begin of the first task to the end of the last; operations overlap."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Costs of a blob, by operation and by queue."""

    layers: tuple[LayerCost, ...]
    """Costs in program order."""
    total_ns: float
    """Predicted time of one inference."""
    busy: dict[str, float]
    """Share of the time that each queue is busy."""


def explain(
    data: bytes | memoryview, name: str = "blob", platform: str | None = None
) -> Explanation:
    """Read the costs of a blob.

    Args:
        data: the blob.
        name: the blob's name in errors.
        platform: the device that times are predicted for, or the path of its file; by default
            that of the blob's architecture.

    Raises:
        BadModel: the data is not a blob, has no layer map, or is for another architecture.
        CompilerUsageError: the platform does not exist.
    """
    try:
        blob = read_blob(data)
        times = predict(blob, None if platform is None else platform_of(platform))
    except PlatformError as error:
        raise CompilerUsageError(str(error)) from None
    except DriverError as error:
        raise BadModel(name, str(error)) from None
    names = _layer_map(blob, name)
    tasks: list[list[TaskTime]] = [[] for _ in names.layers]
    keys = {queue_name(kind, number): (kind, number) for kind, number in names.tasks}
    for task in times:
        numbers = names.tasks.get(keys.get(task.queue, ("", -1)))
        if numbers is None or task.index >= len(numbers):
            raise BadModel(name, f"task {task.index} of {task.queue} belongs to no operation")
        tasks[int(numbers[task.index])].append(task)
    pairs = zip(names.layers, tasks, strict=True)
    layers = [_cost(layer.name, layer.cmx_bytes, own) for layer, own in pairs]
    total = max((task.end_ns for task in times), default=0.0)
    return Explanation(tuple(layers), total, _busy(times, total))


def grouped(layers: Iterable[LayerCost]) -> list[LayerCost]:
    """Merge operations whose names differ only in numbers: one op of all decoder layers."""
    groups: dict[str, LayerCost] = {}
    for layer in layers:
        name = re.sub(r"(?<=[._])\d+(?=[._/]|$)", "*", layer.name)
        found = groups.get(name)
        groups[name] = replace(layer, name=name) if found is None else _joined(found, layer)
    return list(groups.values())


def _joined(a: LayerCost, b: LayerCost) -> LayerCost:
    return LayerCost(
        name=a.name,
        count=a.count + b.count,
        transfers=a.transfers + b.transfers,
        products=a.products + b.products,
        invocations=a.invocations + b.invocations,
        cmx_bytes=max(a.cmx_bytes, b.cmx_bytes),
        ddr_bytes=a.ddr_bytes + b.ddr_bytes,
        macs=a.macs + b.macs,
        busy_ns=a.busy_ns + b.busy_ns,
        span_ns=a.span_ns + b.span_ns,
    )


def _layer_map(blob: Blob, name: str) -> LayerMap:
    try:
        names = read_layer_map(blob)
    except LayerMapError as error:
        raise BadModel(name, str(error), f"section {SECTION_NAME}") from None
    if names is None:
        raise BadModel(name, f"the blob has no section {SECTION_NAME}; compile it with npuc")
    return names


def _busy(times: Sequence[TaskTime], total: float) -> dict[str, float]:
    work: dict[str, float] = {}
    for task in times:
        work[task.queue] = work.get(task.queue, 0.0) + task.end_ns - task.begin_ns
    return {queue: ns / total for queue, ns in work.items()} if total else {}


def _cost(name: str, cmx_bytes: int, tasks: Sequence[TaskTime]) -> LayerCost:
    engines = [task.engine for task in tasks]
    span = max(t.end_ns for t in tasks) - min(t.begin_ns for t in tasks) if tasks else 0.0
    return LayerCost(
        name=name,
        count=1,
        transfers=engines.count(Engine.DMA),
        products=engines.count(Engine.DPU),
        invocations=engines.count(Engine.SHAVE),
        cmx_bytes=cmx_bytes,
        ddr_bytes=sum(task.ddr_bytes for task in tasks),
        macs=sum(task.macs for task in tasks),
        busy_ns=sum(task.alone_ns for task in tasks),
        span_ns=span,
    )
