"""Assignment of ops to the layers of a model, and lifetimes of tensors that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compiler_layer.schedule.layout import BufferLayout, HardwareOp
from compiler_layer.schedule.views import Buffer, Space

LayerOf = Callable[[str], int | None]
"""Function from a weight's name to its layer; the number of layers for weights behind them."""


class Owners:
    """Owners of ops; an op belongs to the last layer whose weights it depends on."""

    def __init__(self, layer_of: LayerOf, layers: int) -> None:
        self._layer_of = layer_of
        self._last = layers + 1
        self._made: dict[Buffer, int] = {}
        self.constants: dict[Buffer, int] = {}
        """Owner of the first op that reads each constant."""
        self.ports: dict[Buffer, int] = {}
        """Owner of the first op that uses each input and output."""

    def of(self, op: HardwareOp) -> int:
        """Return 0 for an op before the layers, 1 for the first layer, and so on."""
        read = [view.buffer for view in op.operands]
        known = (
            self._named(x.name) if x.space is Space.CONSTANT else self._made.get(x, 0) for x in read
        )
        owner = max([self._named(f"{op.name}."), *known])
        written = [view.buffer for view in op.results]
        self._made.update(dict.fromkeys(written, owner))
        for buffer in (*read, *written):
            if buffer.space is Space.CONSTANT:
                self.constants.setdefault(buffer, owner)
            elif buffer.space is not Space.SCRATCH:
                self.ports.setdefault(buffer, owner)
        return owner

    def _named(self, name: str) -> int:
        layer = self._layer_of(name)
        return 0 if layer is None else min(layer + 1, self._last)


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
