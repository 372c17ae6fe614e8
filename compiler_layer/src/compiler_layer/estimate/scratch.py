"""Lifetimes of intermediate tensors, before tasks are ordered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler_layer.schedule.layout import BufferLayout, HardwareOp
from compiler_layer.schedule.views import Buffer, Space

_FOLDED = 2
"""Layers of the stand-in for a model whose layers are all equal; they are compiled as one."""


def spans_of(
    laid_out: BufferLayout, owners: Sequence[int], layers: int
) -> dict[Buffer, tuple[int, int]]:
    """Return the first and the last op that touches each scratch buffer.

    Layers that are compiled once and run many times pass results on in two alternating buffers.
    These buffers, and buffers that all layers read, stay live through all layers.

    Args:
        laid_out: ops in their order.
        owners: owner of each op, as ``Owners`` numbers it.
        layers: number of layers; a model may have no layer ops, like the model of an LM head.
    """
    spans: dict[Buffer, tuple[int, int]] = {}
    for at, op in enumerate(laid_out.ops):
        for buffer in _scratch(op):
            first, _ = spans.get(buffer, (at, at))
            spans[buffer] = (first, at)
    inside = [at for at, owner in enumerate(owners) if 1 <= owner <= layers]
    if layers != _FOLDED or not inside:
        return spans
    begin, end = inside[0], inside[-1]
    for buffer, (first, last) in list(spans.items()):
        made, read = owners[first], owners[last]
        if made == 0 < read:
            spans[buffer] = (first, max(last, end))
        elif 1 <= made < read <= layers:
            spans[buffer] = (begin, end)
            spans[Buffer(buffer.name, Space.SCRATCH, buffer.nbytes)] = (begin, end)
    return spans


def _scratch(op: HardwareOp) -> Iterable[Buffer]:
    buffers = (view.buffer for view in (*op.operands, *op.results))
    return (buffer for buffer in buffers if buffer.space is Space.SCRATCH)
