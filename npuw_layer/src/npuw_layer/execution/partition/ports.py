"""Isolations of groups of ops, and listeners to partitioning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import Part, PartOps
    from npuw_layer.execution.partition.container import Call


AVOIDS = "not "
"""Prefix of the tag of groups that avoid a device, whose name follows."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """Groups of ops of models, and the device that runs them."""

    device: Device
    """Device for models that consist of one group; it uses the memory of the rest's device."""
    groups: Callable[[Model], Sequence[PartOps]]
    """Search for the groups of a model, which is static and pure, in the ``ov`` dialect
    (``compiler_layer.pipeline.lower_graph``), and is not changed. Variables are inputs and outputs.
    """


class Listener:
    """Listener to the compilation of static models, which must not change them.

    A subclass overrides only the events that it needs.
    """

    def whole(self, submodel: str, model: Model) -> None:
        """Receive a model before it is cut.

        Args:
            submodel: name of the static model.
            model: the model, not to be changed.
        """

    def cut(self, submodel: str, parts: Sequence[Part], calls: Sequence[Call]) -> None:
        """Receive the parts of a compiled model.

        Args:
            submodel: name of the static model.
            parts: its parts, in execution order; one if it is not cut.
            calls: calls of the parts; equal parts have one function.
        """

    def failed(self, submodel: str, parts: Sequence[Part], error: RuntimeError) -> None:
        """Receive the parts and the error of a failed compilation; arguments as ``cut``."""
