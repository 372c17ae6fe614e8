"""Inputs and outputs of a Kokoro as it was before it was split."""

from __future__ import annotations

from dataclasses import dataclass

from npuw_layer.kokoro.compiled import CompiledKokoro
from npuw_layer.kokoro.names import ASR_BLOCK, EN_BLOCK, INPUT_LENGTHS, TEXT_MASK
from npuw_layer.model_port import ModelPort
from npuw_layer.static.port import StaticPort

OPEN = -1
"""A dimension that each inference decides."""

_BETWEEN = (TEXT_MASK, INPUT_LENGTHS, EN_BLOCK, ASR_BLOCK)
"""Inputs of its parts that the host fills."""


@dataclass(frozen=True, slots=True)
class SpeechPort(ModelPort):
    """An output of a Kokoro."""

    partial_shape: tuple[int, ...]
    """``OPEN`` where the text decides how long it is."""

    def get_partial_shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.partial_shape


def inputs_of(compiled: CompiledKokoro) -> list[StaticPort]:
    """The inputs of either part that are the whole model's."""
    found: dict[str, StaticPort] = {}
    for port in (*compiled.durations.inputs, *compiled.audio.inputs):
        if port.any_name not in _BETWEEN:
            found.setdefault(port.any_name, port)
    return [
        StaticPort(name, port.element_type, index, port.shape, is_input=True)
        for index, (name, port) in enumerate(found.items())
    ]


def outputs_of(compiled: CompiledKokoro) -> list[SpeechPort]:
    """The audio, and the durations of tokens."""
    sound, lasting = compiled.sound, compiled.lasting
    return [
        SpeechPort(sound.any_name, sound.element_type, 0, (*sound.shape[:-1], OPEN)),
        SpeechPort(lasting.any_name, lasting.element_type, 1, lasting.shape),
    ]
