"""Inputs and outputs of a compiled model, as OpenVINO's ``ConstOutput`` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from npuw_layer.errors import TensorError


@dataclass(frozen=True, slots=True)
class ModelPort:
    """An input or output; kinds of models add what shape it has."""

    any_name: str
    element_type: str
    """By OpenVINO's name; arrays hold bf16 as its raw bits."""
    index: int
    """Its number among the inputs, or the outputs."""

    @property
    def names(self) -> set[str]:
        """Its names; there is one."""
        return {self.any_name}

    def get_any_name(self) -> str:
        """Its name."""
        return self.any_name

    def get_names(self) -> set[str]:
        """Its names; there is one."""
        return self.names

    def get_element_type(self) -> str:
        """Its element type."""
        return self.element_type


OPEN = -1
"""A dimension that inferences decide."""


@dataclass(frozen=True, slots=True)
class OpenPort(ModelPort):
    """An input or output some of whose dimensions each inference decides."""

    partial_shape: tuple[int, ...]
    """Its dimensions; ``OPEN`` where they are not fixed."""

    def get_partial_shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.partial_shape


PortKey = str | int | ModelPort
"""A port, its name or its number."""

Port = TypeVar("Port", bound=ModelPort)


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


def only_port(ports: Sequence[Port], key: PortKey | None, side: str) -> Port:
    """The same, where the only port need not be named.

    Raises:
        TensorError: there is none, or there are several.
    """
    if key is None and len(ports) != 1:
        raise TensorError(f"the model has {len(ports)} {side}s; say which by name or number")
    return find_port(ports, 0 if key is None else key, side)
