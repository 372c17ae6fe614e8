"""Inputs and outputs of a Kokoro before it was split."""

from __future__ import annotations

from npuw_layer.api.model_port import OPEN, OpenPort
from npuw_layer.kinds.kokoro.compiled import CompiledKokoro
from npuw_layer.kinds.kokoro.names import ASR_BLOCK, EN_BLOCK, INPUT_LENGTHS, TEXT_MASK
from npuw_layer.kinds.static.port import StaticPort

_BETWEEN = (TEXT_MASK, INPUT_LENGTHS, EN_BLOCK, ASR_BLOCK)
"""Inputs that the host fills."""


def inputs_of(compiled: CompiledKokoro) -> list[StaticPort]:
    """Return the inputs of both models that are inputs of the whole model."""
    found: dict[str, StaticPort] = {}
    for port in (*compiled.durations.inputs, *compiled.audio.inputs):
        if port.any_name not in _BETWEEN:
            found.setdefault(port.any_name, port)
    return [
        StaticPort(name, port.element_type, index, port.shape, is_input=True)
        for index, (name, port) in enumerate(found.items())
    ]


def outputs_of(compiled: CompiledKokoro) -> list[OpenPort]:
    """Return the audio and the durations of tokens."""
    sound, lasting = compiled.sound, compiled.lasting
    return [
        OpenPort(sound.any_name, sound.element_type, 0, (*sound.shape[:-1], OPEN)),
        OpenPort(lasting.any_name, lasting.element_type, 1, lasting.shape),
    ]
