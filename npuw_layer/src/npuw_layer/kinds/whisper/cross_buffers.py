"""Where a request's audio lies: what the encoder gave, and K and V of it for cross-attention.

Prefill writes K and V to the very memory that all generate variants read: nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from npuw_layer.backends.arena import Arena, nbytes
from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Array,
    Device,
    Program,
    TensorInfo,
)
from npuw_layer.kinds.whisper.names import ENCODER_STATES, is_cross_variable
from npuw_layer.traits.lora.values import AdapterValues


class CrossBuffers:
    """What the static models of a decoder hear; satisfies ``llm.request.request_buffers``.

    Args:
        device: where it lies.
        prefill: inputs and outputs of the model that reads prompts; it makes all there is.
    """

    def __init__(self, device: Device, prefill: Iterable[TensorInfo]) -> None:
        held = [info for info in map(_variable, prefill) if _is_held(info)]
        self._arena = Arena(device, held)
        self._nbytes = sum(map(nbytes, held))

    @property
    def nbytes(self) -> int:
        """Device memory that it takes."""
        return self._nbytes

    @property
    def states(self) -> Array:
        """What the encoder gave, f32 [1, frames, channels]; the next prompt is read with it."""
        return self._arena[ENCODER_STATES]

    @property
    def names(self) -> list[str]:
        """The variables."""
        return [name for name in self._arena.tensors if name != ENCODER_STATES]

    def rows(self, name: str) -> Array:
        """The values of a variable, [frames, heads, width]; a view."""
        return self._arena[name][0]

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Let a program read them, or write them, here."""
        for info in ports:
            tensor = self._arena.tensors.get(_variable(info).name)
            if tensor is not None:
                program.bind(info.name, tensor.memory, tensor.offset)

    def apply(self, values: AdapterValues) -> None:
        """Do nothing: a decoder has no adapters."""

    def advance(self, tokens: int) -> None:
        """Do nothing: what was heard stays."""


def _variable(info: TensorInfo) -> TensorInfo:
    """The same under its own name."""
    name = info.name.removeprefix(READ_PREFIX).removeprefix(ASSIGN_PREFIX)
    return TensorInfo(name, info.element, info.shape)


def _is_held(info: TensorInfo) -> bool:
    return info.name == ENCODER_STATES or is_cross_variable(info.name)
