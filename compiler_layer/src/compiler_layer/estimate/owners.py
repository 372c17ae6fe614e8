"""Whose work each op is."""

from __future__ import annotations

from collections.abc import Callable

from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.views import Buffer, Space

LayerOf = Callable[[str], int | None]
"""Which layer a weight belongs to, by its name; the number of layers for what is behind them."""


class Owners:
    """Finds whose work each op is: that of the last layer whose weights have a part in it."""

    def __init__(self, layer_of: LayerOf, layers: int) -> None:
        self._layer_of = layer_of
        self._last = layers + 1
        self._made: dict[Buffer, int] = {}
        self.constants: dict[Buffer, int] = {}
        """For each constant the first that reads it."""
        self.ports: dict[Buffer, int] = {}
        """The same for inputs and outputs."""

    def of(self, op: HardwareOp) -> int:
        """Give 0 for what is before the layers, 1 for the first of them, and so on."""
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
