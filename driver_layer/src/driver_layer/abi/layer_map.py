"""The layer map, from tasks to operations of the model, and the record of a task's time.

The layer map is a section that only tools read. It holds a head, the operations, and for each queue
one operation number per task, in the queue's order. In a real blob, the profiling metadata serves
this purpose, in FlatBuffers and with far more content.

Source: this project's own; see docs/reference/elf.md#profiling-metadata for that of real blobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.layout import record

SECTION_NAME = "info.layers"

TASK_TIME = record(
    32,
    ("kind", 0, "u1"),
    ("number", 1, "u1"),
    ("index", 4, "<u4"),
    ("begin_ns", 8, "<u8"),
    ("end_ns", 16, "<u8"),
    ("alone_ns", 24, "<u8"),
)
"""A task: its queue (an index into ``layer_map.QUEUE_KINDS``, and the port or tile), its index in
the queue, its begin and end since the start of the inference, and its duration without contention.

The real device writes records of different lengths for DMA, DPU and SHAVE, with counters that are
not simulated here."""

_HEAD = record(
    16,
    ("magic", 0, "S4"),
    ("layers", 4, "<u4"),
    ("queues", 8, "<u4"),
    ("name_bytes", 12, "<u4"),
)
_LAYER = record(16, ("end", 0, "<u4"), ("kind_bytes", 4, "<u4"), ("cmx_bytes", 8, "<u8"))
"""An operation: the end of its text (name, then kind; it begins at the end of the previous
operation's text), the length of the kind, and the CMX bytes."""
_QUEUE = record(8, ("kind", 0, "u1"), ("number", 1, "u1"), ("tasks", 4, "<u4"))

_MAGIC = b"LYR1"

QUEUE_KINDS = ("dma_ddr", "dma_cmx", "dpu", "shave")
"""Kinds of queues: DMA that reads DDR and DMA that reads CMX, per port; DPU and SHAVE, per tile."""

QueueKey = tuple[str, int]
"""The kind of a queue, and its port or tile."""


class LayerMapError(ValueError):
    """The section is malformed."""


@dataclass(frozen=True, slots=True)
class Layer:
    """An operation of the model."""

    name: str
    """Friendly name."""
    cmx_bytes: int
    """Peak CMX use of its tasks on one tile."""
    kind: str = ""
    """Type of the operation, e.g. "MatMul"; empty if unknown."""


@dataclass(frozen=True, slots=True)
class LayerMap:
    """The operations of a blob, and for each queue the operation number of each task."""

    layers: tuple[Layer, ...]
    tasks: Mapping[QueueKey, npt.NDArray[np.uint32]]


def encode_layer_map(
    layers: Sequence[Layer], tasks: Mapping[QueueKey, Sequence[int] | npt.NDArray[np.uint32]]
) -> bytes:
    """Encode the section."""
    names = [layer.name.encode() for layer in layers]
    kinds = [layer.kind.encode() for layer in layers]
    head = np.zeros(1, _HEAD)
    head[0] = (_MAGIC, len(layers), len(tasks), sum(map(len, names + kinds)))
    table = np.zeros(len(layers), _LAYER)
    table["kind_bytes"] = [len(kind) for kind in kinds]
    table["end"] = np.cumsum([len(name) for name in names]) + np.cumsum(table["kind_bytes"])
    table["cmx_bytes"] = [layer.cmx_bytes for layer in layers]
    queues = np.zeros(len(tasks), _QUEUE)
    for row, ((kind, number), numbers) in zip(queues, tasks.items(), strict=True):
        row["kind"], row["number"], row["tasks"] = QUEUE_KINDS.index(kind), number, len(numbers)
    parts = [np.array(numbers, "<u4").tobytes() for numbers in tasks.values()]
    texts = [text for pair in zip(names, kinds, strict=True) for text in pair]
    return b"".join([head.tobytes(), table.tobytes(), queues.tobytes(), *parts, *texts])


def decode_layer_map(data: bytes | memoryview) -> LayerMap:
    """Decode the section.

    Raises:
        LayerMapError: the section is malformed.
    """
    reader = _Reader(memoryview(data).cast("B"))
    (head,) = reader.take(_HEAD, 1)
    if head["magic"] != _MAGIC:
        raise LayerMapError("the section does not begin with its magic number")
    table = reader.take(_LAYER, int(head["layers"]))
    queues = reader.take(_QUEUE, int(head["queues"]))
    tasks: dict[QueueKey, npt.NDArray[np.uint32]] = {}
    for row in queues:
        if row["kind"] >= len(QUEUE_KINDS):
            raise LayerMapError(f"unknown kind of queue: {row['kind']}")
        numbers = reader.take(np.dtype("<u4"), int(row["tasks"]))
        if len(numbers) and numbers.max() >= len(table):
            raise LayerMapError(f"a task has operation number {numbers.max()} of {len(table)}")
        tasks[QUEUE_KINDS[row["kind"]], int(row["number"])] = numbers
    names = reader.take(np.dtype("u1"), int(head["name_bytes"])).tobytes()
    return LayerMap(tuple(_layers(table, names)), tasks)


def _layers(table: npt.NDArray[np.void], names: bytes) -> list[Layer]:
    ends = table["end"].astype(np.int64)
    if (np.diff(ends, prepend=0) < 0).any() or (len(ends) and ends[-1] != len(names)):
        raise LayerMapError("the ends of the texts do not match their total length")
    begins = np.concatenate([[0], ends])[:-1]
    middles = ends - table["kind_bytes"]
    if (middles < begins).any():
        raise LayerMapError("the kind of an operation is longer than its complete text")
    places = zip(begins.tolist(), middles.tolist(), ends.tolist(), table, strict=True)
    return [
        Layer(
            name=names[begin:middle].decode(errors="replace"),
            cmx_bytes=int(row["cmx_bytes"]),
            kind=names[middle:end].decode(errors="replace"),
        )
        for begin, middle, end, row in places
    ]


class _Reader:
    """Takes arrays from the front of the data."""

    def __init__(self, data: memoryview) -> None:
        self._data = data

    def take(self, kind: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        """Return the next ``count`` elements."""
        size = count * kind.itemsize
        if size > len(self._data):
            raise LayerMapError(f"the section ends before {count} records of {kind.itemsize} bytes")
        taken, self._data = self._data[:size], self._data[size:]
        return np.frombuffer(taken, kind)
