"""What a request's static models read besides tokens and caches, in memory of the request's own.

``traits.lora.buffers`` has adapters there, ``kinds.whisper.cross_buffers`` what a decoder hears,
``traits.linear_states.states`` what layers without K and V keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from npuw_layer.backends.protocols import Program, TensorInfo
from npuw_layer.traits.lora.values import AdapterValues


class ProgramBuffers(Protocol):
    """Device memory as the static models of a request use it."""

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Let a program find here what it reads or writes of it.

        Args:
            program: bound to all else.
            ports: its inputs and outputs, others among them.
        """
        ...

    def advance(self, tokens: int) -> None:
        """Go on behind so many more tokens: a program has run on them."""
        ...


class RequestBuffers(ProgramBuffers, Protocol):
    """The same as the request sees it."""

    @property
    def nbytes(self) -> int:
        """Device memory that it takes."""
        ...

    def apply(self, values: AdapterValues) -> None:
        """Bring adapters that were set to where programs read them; before each inference.

        Raises:
            StateError: the parts of an adapter have different ranks; nothing is copied.
        """
        ...


class JoinedBuffers:
    """Several of them; satisfies ``ProgramBuffers``.

    Args:
        parts: each with memory of its own.
    """

    def __init__(self, *parts: ProgramBuffers) -> None:
        self._parts = parts

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Bind a program to all."""
        for part in self._parts:
            part.bind(program, ports)

    def advance(self, tokens: int) -> None:
        """Go on behind so many more tokens."""
        for part in self._parts:
            part.advance(tokens)
