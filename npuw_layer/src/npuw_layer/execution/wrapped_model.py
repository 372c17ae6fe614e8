"""A loaded model whose programs something stands around."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from npuw_layer.backends.protocols import LoadedModel, Program, TensorInfo
from npuw_layer.execution.devices.placed import Placement, ReportsPlacement

Wrap = Callable[[Program], Program]


def with_programs(model: LoadedModel, wrap: Wrap) -> LoadedModel:
    """Give the same model, where something stands around each of its programs.

    Args:
        model: it tells its placement as before, if it did.
        wrap: gives what runs in place of a program.
    """
    kind = _PlacedWrappedModel if isinstance(model, ReportsPlacement) else _WrappedModel
    return kind(model, wrap)


class _WrappedModel:
    """Satisfies ``backends.protocols.LoadedModel``."""

    def __init__(self, model: LoadedModel, wrap: Wrap) -> None:
        self._model = model
        self._wrap = wrap

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The model's."""
        return self._model.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The model's."""
        return self._model.outputs

    def create_program(self) -> Program:
        """Make something to run."""
        return self._wrap(self._model.create_program())


class _PlacedWrappedModel(_WrappedModel):
    """The same on one of several devices."""

    @property
    def placement(self) -> Placement:
        """Where it runs now; see ``ReportsPlacement``."""
        assert isinstance(self._model, ReportsPlacement)
        return self._model.placement
