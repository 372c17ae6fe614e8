"""Names of tasks in messages, and the operations of the model that tasks belong to."""

from __future__ import annotations

from driver_layer.abi.layer_map import (
    SECTION_NAME,
    LayerMap,
    LayerMapError,
    decode_layer_map,
)
from driver_layer.loader.read import Blob
from driver_layer.npu.program import queue_name


def read_layer_map(blob: Blob) -> LayerMap | None:
    """Read a blob's layer map; None if the blob has none.

    Raises:
        LayerMapError: the section is malformed.
    """
    found = next((each for each in blob.sections if each.name == SECTION_NAME), None)
    return None if found is None else decode_layer_map(found.data)


def op_of(blob: Blob, queue: str | None, task: int | None) -> str:
    """Return kind and name of a task's operation, e.g. "MatMul fc1"; empty if unknown.

    Args:
        blob: the blob that the task is from.
        queue: name of the task's queue, as of ``npu.program.queue_name``.
        task: index of the task in its queue.
    """
    try:
        layers = read_layer_map(blob)
    except LayerMapError:
        return ""
    if layers is None or task is None:
        return ""
    owners = next((own for key, own in layers.tasks.items() if queue_name(*key) == queue), ())
    if task >= len(owners):
        return ""
    layer = layers.layers[int(owners[task])]
    return f"{layer.kind} {layer.name}".strip()


def described(blob: Blob, queue: str, task: int) -> str:
    """Return the name of a task for messages, e.g. "DPU tile 0, task 3 (MatMul fc1)"."""
    op = op_of(blob, queue, task)
    return f"{queue}, task {task} ({op})" if op else f"{queue}, task {task}"
