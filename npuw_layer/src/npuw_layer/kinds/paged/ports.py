"""Inputs and outputs of a model with paged attention, before it was made static."""

from __future__ import annotations

from dataclasses import dataclass

from npuw_layer.api.model_port import ModelPort
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.kinds.paged.compiled import CompiledPaged
from npuw_layer.kinds.paged.names import Role, role_of
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.tensors.names import VOCABULARY

OPEN = -1
"""A dimension that each inference decides."""


@dataclass(frozen=True, slots=True)
class PagedPort(ModelPort):
    """An input or output of a model with paged attention."""

    partial_shape: tuple[int, ...]
    """Shape, with ``OPEN`` first unless scalar: tokens, sequences, or blocks."""

    def get_partial_shape(self) -> tuple[int, ...]:
        """Return the dimensions."""
        return self.partial_shape

    @property
    def role(self) -> Role:
        """Role of the input."""
        return role_of(self.any_name)

    def check(self, element: str, shape: tuple[int, ...]) -> None:
        """Check that a tensor's type and shape fit.

        Raises:
            TensorError: the type or shape differs.
        """
        same_rank = len(shape) == len(self.partial_shape)
        fits = all(d in (OPEN, n) for d, n in zip(self.partial_shape, shape, strict=False))
        if element != self.element_type or not (same_rank and fits):
            dims = ", ".join("?" if d == OPEN else str(d) for d in self.partial_shape)
            raise TensorError(
                f"{self.any_name!r} is {self.element_type} [{dims}], not {element} {list(shape)}"
            )

    def check_array(self, array: Array) -> None:
        """Check that an array fits; caches must be writable in place.

        Raises:
            TensorError: the array does not fit.
        """
        fits = array.dtype == ELEMENT_TYPES[self.element_type]
        self.check(self.element_type if fits else str(array.dtype), array.shape)
        flags = array.flags
        if self.role is Role.CACHE and not (flags.writeable and flags.c_contiguous):
            raise TensorError(
                f"{self.any_name!r} is written in place, but the array is read-only or not "
                "contiguous; set a writeable, contiguous array"
            )


def inputs_of(compiled: CompiledPaged) -> list[PagedPort]:
    """Return the inputs of the exported model."""
    every = compiled.largest.inputs
    return [_opened(port) for port in every if not port.any_name.startswith(VOCABULARY)]


def outputs_of(compiled: CompiledPaged) -> list[PagedPort]:
    """Return the outputs, with a row for each token, or for each sampled token."""
    return [_opened(port) for port in compiled.largest.outputs]


def _opened(port: StaticPort) -> PagedPort:
    shape = (OPEN, *port.shape[1:]) if port.shape else ()
    return PagedPort(port.any_name, port.element_type, port.index, shape)
