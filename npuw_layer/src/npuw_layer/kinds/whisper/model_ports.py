"""Inputs of a Whisper decoder as they were before it was split."""

from __future__ import annotations

from npuw_layer.api.model_port import OPEN, OpenPort
from npuw_layer.kinds.whisper.names import ENCODER_STATES
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.names import IDS
from npuw_layer.llm.request.model_ports import numbered, with_beams


def inputs_of(compiled: CompiledLLM) -> list[OpenPort]:
    """The inputs; positions, the mask and which of the audio counts are the split's own."""
    prefill = compiled.models[compiled.plan.prefill[0]]
    channels = next(info.shape[-1] for info in prefill.inputs if info.name == ENCODER_STATES)
    ids = (IDS, "i64", (OPEN, OPEN))
    return numbered(with_beams([ids, (ENCODER_STATES, "f32", (OPEN, OPEN, channels))]))
