"""Trait of cross-attention."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Device,
    LoadedModel,
    TensorInfo,
)
from npuw_layer.errors import BlobError
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.llm.request.history import History
from npuw_layer.llm.trait import ConversationPart, Instance, Trait
from npuw_layer.options import Options
from npuw_layer.traits.cross_attention.buffers import CrossBuffers
from npuw_layer.traits.cross_attention.names import ENCODER_STATES, SCORES, is_cross_variable
from npuw_layer.traits.variables import variables


class _OfModel(Instance):
    """Encoder states, and K and V, of one decoder.

    Args:
        held: the input of encoder states, and K and V by variable.
    """

    one_row_for = "an encoder's states"

    def __init__(self, held: Sequence[TensorInfo]) -> None:
        self._held = held

    def part(self, device: Device, cache: KVStrategy, history: History) -> ConversationPart:
        """Allocate the buffers of a conversation."""
        return CrossBuffers(device, self._held)


class CrossAttention(Trait):
    """K and V of encoder states, in addition to the K and V of tokens."""

    bound_inputs = (ENCODER_STATES,)
    other_outputs = (SCORES,)

    def owns(self, variable: str) -> bool:
        """Return whether a variable is K or V of cross-attention."""
        return is_cross_variable(variable)

    def recognise(self, inputs: Sequence[TensorInfo]) -> Instance | None:
        """Return the instance for a decoder that attends to an encoder."""
        states = [info for info in inputs if info.name == ENCODER_STATES]
        held = [*states, *variables(inputs, READ_PREFIX, is_cross_variable).values()]
        return _OfModel(held) if held else None

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> None:
        """Check that generate reads the K and V of cross-attention that prefill assigns.

        Only speech decoders have them.

        Raises:
            BlobError: a program has other K and V, or does not take the encoder's states.
        """
        if not options.named("NPUW_WHISPER"):
            return
        frames = options.named("NPUW_WHISPER_ENCODER_LEN")
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


TRAIT = CrossAttention("cross_attention")
