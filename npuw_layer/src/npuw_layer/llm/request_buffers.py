"""What a request's static models read besides tokens and caches, in memory of the request's own.

``lora.buffers`` has adapters there, ``whisper.cross_buffers`` what a decoder hears.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from npuw_layer.lora.values import AdapterValues
from npuw_layer.ports import Program, TensorInfo


class RequestBuffers(Protocol):
    """Device memory that all static models of a request share."""

    @property
    def nbytes(self) -> int:
        """Device memory that it takes."""
        ...

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Let a program find here what it reads or writes of it.

        Args:
            program: bound to all else.
            ports: its inputs and outputs, others among them.
        """
        ...

    def apply(self, values: AdapterValues) -> None:
        """Bring adapters that were set to where programs read them; before each inference.

        Raises:
            StateError: the parts of an adapter have different ranks; nothing is copied.
        """
        ...
