"""Programs made of several programs, which may share inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.backends.protocols import Memory, Program
from npuw_layer.errors import DeviceError


class JoinedProgram:
    """Base of a program that runs several; satisfies ``protocols.Program``.

    Args:
        programs: the programs, in execution order.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = programs
        self._routes: dict[str, list[tuple[Program, str]]] = {}
        """The programs' ports that each port of the whole stands for."""

    def _add(self, name: str, program: Program, own: str) -> None:
        """Add a program's port to a port of the whole."""
        self._routes.setdefault(name, []).append((program, own))

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory, for all programs that have it.

        Raises:
            DeviceError: no such tensor exists, or the memory is of another device.
        """
        if name not in self._routes:
            raise DeviceError(f"the model has no input or output {name!r}")
        for program, own in self._routes[name]:
            program.bind(own, memory, offset)

    def prepare(self) -> None:
        """Prepare all programs.

        Raises:
            DeviceError: a tensor is not bound.
        """
        for program in self._programs:
            program.prepare()

    def run(self) -> None:
        """Run all programs, one after another.

        Raises:
            DeviceError: a tensor is not bound, or the device failed.
        """
        for program in self._programs:
            program.run()
