"""What a way of running groups of ops must provide, and what partitioning can use of a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from npuw_layer.backends.protocols import Device, TensorInfo

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.passes.partition.parts import Group, Part
    from compiler_layer.pieces import CompiledFunction
    from npuw_layer.execution.partition.container import Call


AVOIDS = "not "
"""Begins the tag of groups that do not run on a device; its name follows."""


class Isolation(Protocol):
    """Finds groups of ops in models, and runs them."""

    @property
    def device(self) -> Device:
        """Runs models that are one of the groups, on memory of the device that runs the rest."""
        ...

    def groups(self, model: Model) -> Sequence[Group]:
        """Find the groups of a model.

        Args:
            model: static and pure, in the ``ov`` dialect (``compiler_layer.pipeline.lower_graph``);
                it is not changed. Variables are inputs and outputs.
        """
        ...


@runtime_checkable
class ReadsModelInputs(Protocol):
    """An optional ability of what runs groups: programs that read more of the model's inputs.

    Such an input is one of the program's inputs, by the model's name for it, and is bound as any:
    so a mask tells what is padding, say, though no op of the group uses it.
    """

    def within(self, inputs: Sequence[TensorInfo]) -> Device:
        """Give a device that compiles groups of one model.

        Args:
            inputs: that the model has.
        """
        ...


@runtime_checkable
class CompilesFunctions(Protocol):
    """An optional ability of a device: one program for parts that differ in their weights."""

    def compile_function(self, model: Model, config: Mapping[str, str]) -> CompiledFunction:
        """Compile a part that is called several times.

        Args:
            model: static and pure; its constants have a value for each call where these differ;
                consumed.
            config: as for ``Device.compile``.

        Raises:
            RuntimeError: it is not supported, or does not fit.
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
