"""Interface of a way of running groups of ops, and of listeners to partitioning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from npuw_layer.backends.protocols import Device

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import Part, PartOps
    from npuw_layer.execution.partition.container import Call


AVOIDS = "not "
"""Begins the tag of groups that do not run on a device; its name follows."""


class Isolation(Protocol):
    """Finds groups of ops in models, and runs them."""

    @property
    def device(self) -> Device:
        """Runs models that are one of the groups, on memory of the device that runs the rest."""
        ...

    def groups(self, model: Model) -> Sequence[PartOps]:
        """Find the groups of a model.

        Args:
            model: static and pure, in the ``ov`` dialect (``compiler_layer.pipeline.lower_graph``);
                it is not changed. Variables are inputs and outputs.
        """
        ...


class Listener:
    """Hears what becomes of static models that are compiled; it changes nothing of them.

    Who only wants to hear of some of it leaves the rest out.
    """

    def whole(self, submodel: str, model: Model) -> None:
        """Hear of a model before it is cut.

        Args:
            submodel: what the static model is called.
            model: not to be changed.
        """

    def cut(self, submodel: str, parts: Sequence[Part], calls: Sequence[Call]) -> None:
        """Hear of a model that is compiled.

        Args:
            submodel: as above.
            parts: of it, in the order in which they run; one if it is not cut.
            calls: of the same; equal parts have one function.
        """

    def failed(self, submodel: str, parts: Sequence[Part], error: RuntimeError) -> None:
        """Hear of a model that nobody compiles; parameters as above."""
