"""Inputs and outputs of a partitioned model: each may belong to several programs."""

from __future__ import annotations

from npuw_layer.backends.protocols import Memory, Program
from npuw_layer.errors import DeviceError


class JoinedPorts:
    """Map of a model's inputs and outputs to its programs' ports."""

    def __init__(self) -> None:
        self._routes: dict[str, list[tuple[Program, str]]] = {}

    def add(self, name: str, program: Program, own: str) -> None:
        """Add a program's port to a port of the model."""
        self._routes.setdefault(name, []).append((program, own))

    def ignore(self, name: str) -> None:
        """Add a port of the model that no program reads."""
        self._routes.setdefault(name, [])

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind one of the model's inputs or outputs to memory, for all programs that have it.

        Raises:
            DeviceError: no such tensor exists, or the memory is of another device.
        """
        if name not in self._routes:
            raise DeviceError(f"the model has no input or output {name!r}")
        for program, own in self._routes[name]:
            program.bind(own, memory, offset)
