"""Checks that imported programs agree on K and V of the audio."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, LoadedModel, TensorInfo
from npuw_layer.errors import BlobError
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.traits.cross_attention.names import ENCODER_STATES, is_cross_variable
from npuw_layer.traits.variables import variables


def check_cross_attention(
    stages: Sequence[Stage], loaded: Sequence[LoadedModel], frames: int
) -> None:
    """Check that generate reads the K and V of cross-attention that prefill assigns.

    Args:
        stages: expected stages of the programs; all of a model's, or some.
        loaded: the programs.
        frames: NPUW_WHISPER_ENCODER_LEN.

    Raises:
        BlobError: a program has other K and V, or does not take the encoder's states.
    """
    known: dict[str, TensorInfo] = {}
    for stage, program in zip(stages, loaded, strict=True):
        if stage.kind is StageKind.PREFILL:
            _check_states(stage, program, frames)
            found = variables(program.outputs, ASSIGN_PREFIX, is_cross_variable)
        else:
            found = variables(program.inputs, READ_PREFIX, is_cross_variable)
        shapes = [info.shape for info in found.values()]
        fits = all(len(shape) == 4 and shape[:2] == (1, frames) for shape in shapes)
        known = known or found
        if not found or not fits or found != known:
            raise BlobError(f"{stage.name} has other K and V of the audio than the rest")


def _check_states(stage: Stage, program: LoadedModel, frames: int) -> None:
    states = [info for info in program.inputs if info.name == ENCODER_STATES]
    fits = [info.element == "f32" and info.shape[:2] == (1, frames) for info in states]
    if fits != [True] or len(states[0].shape) != 3:
        raise BlobError(f"{stage.name} has no {ENCODER_STATES} f32 [1, {frames}, …]")
