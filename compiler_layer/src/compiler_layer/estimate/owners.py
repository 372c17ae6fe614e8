"""Assignment of ops to the layers of a model."""

from __future__ import annotations

from collections.abc import Callable

from compiler_layer.schedule.layout import HardwareOp
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
        owner = max((self._known(buffer) for buffer in read), default=0)
        owner = max(owner, self._named(f"{op.name}."))
        written = [view.buffer for view in op.results]
        self._made.update(dict.fromkeys(written, owner))
        for buffer in (*read, *written):
            if buffer.space is Space.CONSTANT:
                self.constants.setdefault(buffer, owner)
            elif buffer.space is not Space.SCRATCH:
                self.ports.setdefault(buffer, owner)
        return owner

    def _known(self, buffer: Buffer) -> int:
        constant = buffer.space is Space.CONSTANT
        return self._named(buffer.name) if constant else self._made.get(buffer, 0)

    def _named(self, name: str) -> int:
        layer = self._layer_of(name)
        return 0 if layer is None else min(layer + 1, self._last)
