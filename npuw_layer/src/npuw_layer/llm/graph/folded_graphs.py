"""The graph that a device's programs are compiled from: the smallest that stands for a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device

if TYPE_CHECKING:
    from compiler_layer.model import Model


class FoldedGraphs:
    """Graphs that stand for a model on one device, the smallest first, that of all layers last.

    Args:
        device: says which.
        whole: gives the model.
    """

    def __init__(self, device: Device, whole: Callable[[], Model]) -> None:
        self._device = device
        self._whole = whole
        self._smallest: Model | None = None

    @property
    def smallest(self) -> Model:
        """The smallest that was not refused."""
        if self._smallest is None:
            self._smallest = next(self._foldings)
        return self._smallest

    def refuse(self) -> None:
        """Go on with the next larger one."""
        self._smallest = None

    @cached_property
    def _foldings(self) -> Iterator[Model]:
        return self._device.foldings(self._whole())
