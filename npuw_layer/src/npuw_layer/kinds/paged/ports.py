"""Inputs and outputs of a model with paged attention, before it was made static."""

from __future__ import annotations

from typing import ClassVar

from npuw_layer.api.model_port import OPEN
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.kinds.paged.names import Role, role_of
from npuw_layer.kinds.static.port import StaticPort


class PagedPort(StaticPort):
    """An input or output of a model with paged attention.

    Its first dimension is open unless it is a scalar: tokens, sequences, or blocks.
    """

    least: ClassVar[int] = 0

    @staticmethod
    def of_row(port: StaticPort) -> PagedPort:
        """Return the port for an input or output of a variant."""
        shape = (OPEN, *port.shape[1:]) if port.shape else ()
        return PagedPort(port.any_name, port.element_type, port.index, shape, port.is_input)

    @property
    def role(self) -> Role:
        """Role of the input."""
        return role_of(self.any_name)

    def check_array(self, array: Array) -> None:
        """Check that an array fits; caches must be writable in place.

        Raises:
            TensorError: the array does not fit.
        """
        super().check_array(array)
        flags = array.flags
        if self.role is Role.CACHE and not (flags.writeable and flags.c_contiguous):
            raise TensorError(
                f"{self.any_name!r} is written in place, but the array is read-only or not "
                "contiguous; set a writeable, contiguous array"
            )
