"""Folded graphs: the smallest graph that stands for a model is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device

if TYPE_CHECKING:
    from compiler_layer.model import Model


class FoldedGraphs:
    """Graphs that stand for a model on one device, from the smallest to that of all layers.

    Args:
        device: device that proposes the graphs.
        whole: returns the model.
    """

    def __init__(self, device: Device, whole: Callable[[], Model]) -> None:
        self._device = device
        self._whole = whole
        self._smallest: Model | None = None

    @property
    def smallest(self) -> Model:
        """Smallest graph that was not refused."""
        if self._smallest is None:
            self._smallest = next(self._foldings)
        return self._smallest

    def refuse(self) -> None:
        """Move on to the next larger graph."""
        self._smallest = None

    @cached_property
    def _foldings(self) -> Iterator[Model]:
        return self._device.foldings(self._whole())
