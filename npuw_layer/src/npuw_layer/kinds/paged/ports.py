"""Inputs and outputs of a model with paged attention, as it was before it was made static."""

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
    """An input or output."""

    partial_shape: tuple[int, ...]
    """``OPEN`` first, unless it is a scalar: tokens, sequences, blocks."""

    def get_partial_shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.partial_shape

    @property
    def role(self) -> Role:
        """What an input is for."""
        return role_of(self.any_name)

    def check(self, element: str, shape: tuple[int, ...]) -> None:
        """See that a tensor fits.

        Raises:
            TensorError: it does not.
        """
        same_rank = len(shape) == len(self.partial_shape)
        fits = all(d in (OPEN, n) for d, n in zip(self.partial_shape, shape, strict=False))
        if element != self.element_type or not (same_rank and fits):
            dims = ", ".join("?" if d == OPEN else str(d) for d in self.partial_shape)
            raise TensorError(
                f"{self.any_name!r} is {self.element_type} [{dims}], not {element} {list(shape)}"
            )

    def check_array(self, array: Array) -> None:
        """See that an array fits; a cache is written in place.

        Raises:
            TensorError: it does not.
        """
        fits = array.dtype == ELEMENT_TYPES[self.element_type]
        self.check(self.element_type if fits else str(array.dtype), array.shape)
        flags = array.flags
        if self.role is Role.CACHE and not (flags.writeable and flags.c_contiguous):
            raise TensorError(
                f"{self.any_name!r} is written in place: give an array that is writeable, and "
                "whose elements lie in order"
            )


def inputs_of(compiled: CompiledPaged) -> list[PagedPort]:
    """The inputs, but for what was added to them."""
    every = compiled.largest.inputs
    return [_opened(port) for port in every if not port.any_name.startswith(VOCABULARY)]


def outputs_of(compiled: CompiledPaged) -> list[PagedPort]:
    """The outputs, with a row for each token, or for each that is sampled."""
    return [_opened(port) for port in compiled.largest.outputs]


def _opened(port: StaticPort) -> PagedPort:
    shape = (OPEN, *port.shape[1:]) if port.shape else ()
    return PagedPort(port.any_name, port.element_type, port.index, shape)
