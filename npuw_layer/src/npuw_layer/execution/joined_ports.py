"""The inputs and outputs of a model in pieces: each may be those of several programs."""

from __future__ import annotations

from npuw_layer.backends.protocols import Memory, Program
from npuw_layer.errors import DeviceError


class JoinedPorts:
    """Which programs have which of a model's inputs and outputs, and what they call them."""

    def __init__(self) -> None:
        self._routes: dict[str, list[tuple[Program, str]]] = {}

    def add(self, name: str, program: Program, own: str) -> None:
        """Say that a program has a port of the model, under a name of its own."""
        self._routes.setdefault(name, []).append((program, own))

    def ignore(self, name: str) -> None:
        """Say that the model has a port that no program reads."""
        self._routes.setdefault(name, [])

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let one of the model's inputs or outputs lie in memory, for all programs that have it.

        Raises:
            DeviceError: there is no such tensor, or it is not this device's memory.
        """
        if name not in self._routes:
            raise DeviceError(f"no input or output {name!r}")
        for program, own in self._routes[name]:
            program.bind(own, memory, offset)
