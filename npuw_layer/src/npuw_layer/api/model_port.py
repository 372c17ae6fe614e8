"""Inputs and outputs of a compiled model, with the interface of OpenVINO's ``ConstOutput``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from npuw_layer.errors import TensorError


@dataclass(frozen=True, slots=True)
class ModelPort:
    """An input or output; subclasses of kinds add the shape."""

    any_name: str
    element_type: str
    """OpenVINO's name of the element type; arrays hold bf16 as raw bits."""
    index: int
    """Index among the inputs, or the outputs."""

    @property
    def names(self) -> set[str]:
        """Set of the port's only name."""
        return {self.any_name}

    def get_any_name(self) -> str:
        """Return the name."""
        return self.any_name

    def get_names(self) -> set[str]:
        """Return the set of the port's only name."""
        return self.names

    def get_element_type(self) -> str:
        """Return the element type."""
        return self.element_type


OPEN = -1
"""A dimension that each inference decides."""


@dataclass(frozen=True, slots=True)
class OpenPort(ModelPort):
    """An input or output with dimensions that each inference decides."""

    partial_shape: tuple[int, ...]
    """Dimensions; ``OPEN`` for those that are not fixed."""

    def get_partial_shape(self) -> tuple[int, ...]:
        """Return the dimensions."""
        return self.partial_shape


PortKey = str | int | ModelPort
"""A port, its name or its index."""

Port = TypeVar("Port", bound=ModelPort)


def find_port(ports: Sequence[Port], key: PortKey, side: str) -> Port:
    """Return a port by name, by index, or by the port itself.

    Raises:
        TensorError: no such port exists.
    """
    for port in ports:
        if key == (port.index if isinstance(key, int) else port.any_name) or key == port:
            return port
    known = ", ".join(f"{port.index}: {port.any_name!r}" for port in ports)
    raise TensorError(f"no {side} {key!r}; the model has {known or 'none'}")


def only_port(ports: Sequence[Port], key: PortKey | None, side: str) -> Port:
    """Return a port by key; without a key, the only port.

    Raises:
        TensorError: no such port exists, or several exist without a key.
    """
    if key is None and len(ports) != 1:
        raise TensorError(f"the model has {len(ports)} {side}s; select one by name or index")
    return find_port(ports, 0 if key is None else key, side)
