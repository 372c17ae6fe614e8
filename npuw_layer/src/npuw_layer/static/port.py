"""Inputs and outputs of a compiled model, as OpenVINO's ``ConstOutput`` shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from compiler_layer.elements import NUMPY
from npuw_layer.errors import TensorError
from npuw_layer.ports import Array, TensorInfo


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a static model."""

    any_name: str
    element_type: str
    """By OpenVINO's name; arrays hold bf16 as its raw bits."""
    shape: tuple[int, ...]
    index: int
    """Its number among the inputs, or the outputs."""
    is_input: bool

    @staticmethod
    def of(info: TensorInfo, index: int, is_input: bool) -> Port:
        """Show a program's tensor."""
        return Port(info.name, info.element, info.shape, index, is_input)

    @property
    def names(self) -> set[str]:
        """Its names; there is one."""
        return {self.any_name}

    @property
    def byte_size(self) -> int:
        """Bytes of its tensor."""
        return math.prod(self.shape) * NUMPY[self.element_type].itemsize

    def get_any_name(self) -> str:
        """Its name."""
        return self.any_name

    def get_names(self) -> set[str]:
        """Its names; there is one."""
        return self.names

    def get_element_type(self) -> str:
        """Its element type."""
        return self.element_type

    def get_shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.shape

    def check(self, element: str, shape: tuple[int, ...]) -> None:
        """See that a tensor fits.

        Raises:
            TensorError: it does not.
        """
        if element != self.element_type or shape != self.shape:
            side = "input" if self.is_input else "output"
            raise TensorError(
                f"{side} {self.any_name!r} is {self.element_type} {list(self.shape)}, "
                f"not {element} {list(shape)}"
            )

    def check_array(self, array: Array) -> None:
        """See that an array fits.

        Raises:
            TensorError: it does not.
        """
        fits = array.dtype == NUMPY[self.element_type]
        self.check(self.element_type if fits else str(array.dtype), array.shape)


PortKey = str | int | Port
"""How a caller names a port."""


def find_port(ports: Sequence[Port], key: PortKey, side: str) -> Port:
    """Find a port by its name, its number, or as itself.

    Raises:
        TensorError: there is none.
    """
    for port in ports:
        if key == (port.index if isinstance(key, int) else port.any_name) or key == port:
            return port
    known = ", ".join(f"{port.index}: {port.any_name!r}" for port in ports)
    raise TensorError(f"no {side} {key!r}; there are {known or 'none'}")
