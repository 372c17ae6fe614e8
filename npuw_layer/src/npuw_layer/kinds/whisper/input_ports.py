"""Inputs of a decoder: tokens, and the encoder's output."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npuw_layer.api.model_port import OPEN, OpenPort
from npuw_layer.api.transfers import Transfers
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import TensorError
from npuw_layer.kinds.whisper.conversation import WhisperConversation
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.input_ports import InputPorts
from npuw_layer.llm.request.model_ports import numbered, with_beams
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor, values_of
from npuw_layer.tensors.names import BEAMS, CACHE_POSITION, IDS, LOGITS
from npuw_layer.tensors.token_inputs import TokenInput, check_ids
from npuw_layer.traits.cross_attention.names import ENCODER_STATES

_TOKENS = TokenInput(IDS, "i64")
_NAMES = (IDS, ENCODER_STATES, BEAMS, CACHE_POSITION)


def inputs_of(compiled: CompiledLLM) -> list[OpenPort]:
    """Return the inputs of the model before splitting, which adds positions and masks."""
    prefill = compiled.models[compiled.plan.prefill[0]]
    channels = next(info.shape[-1] for info in prefill.inputs if info.name == ENCODER_STATES)
    ids = (IDS, "i64", (OPEN, OPEN))
    return numbered(with_beams([ids, (ENCODER_STATES, "f32", (OPEN, OPEN, channels))]))


class WhisperInputPorts(InputPorts):
    """Values of the inputs.

    Args:
        conversation: the conversation that the tokens belong to.
        transfers: counters of bytes.
    """

    def __init__(self, conversation: WhisperConversation, transfers: Transfers) -> None:
        super().__init__((_TOKENS,), transfers, vocabulary=conversation.compiled.vocabulary)
        self._conversation = conversation

    def sources(self, given: Mapping[str, Tensor | RemoteTensor]) -> tuple[int, ...]:
        """Return that the only row continues itself: beam_idx is ignored."""
        return (0,)

    def take(self, given: Mapping[str, AnyTensor]) -> NewTokens:
        """Read the tokens of an inference, and the audio if they are a prompt.

        Args:
            given: inputs of this inference only.

        Raises:
            TensorError: an input is missing or does not fit, or an id is out of range.
            RemoteError: the memory of an input was freed.
        """
        own = {name: self._checked(name, value) for name, value in given.items()}
        tensors = self._set | own
        if IDS not in tensors:
            raise TensorError(f"inputs are missing: {IDS}")
        talk, ids = self._conversation, self._values(_TOKENS, tensors[IDS])
        if not len(ids):
            raise TensorError(f"{IDS} has no tokens")
        check_ids(ids, self._vocabulary, (0,))
        tokens = talk.next_tokens(ids)
        if CACHE_POSITION in tensors:
            _check_positions(values_of(tensors[CACHE_POSITION]), tokens.positions)
        if talk.begins_with(len(tokens)):
            self._hear(tensors.get(ENCODER_STATES))
        return tokens

    def _hear(self, tensor: Tensor | RemoteTensor | None) -> None:
        """Copy the encoder's output for new audio.

        Raises:
            TensorError: the input is missing, or has another shape or type.
        """
        states = self._conversation.audio.states
        if tensor is None:
            raise TensorError(
                f"inputs are missing: {ENCODER_STATES} f32 {list(states.shape)}, the audio of the "
                "prompt"
            )
        element = tensor.element_type if isinstance(tensor, RemoteTensor) else tensor.data.dtype
        if element not in ("f32", np.float32) or tensor.shape != states.shape:
            raise TensorError(
                f"{ENCODER_STATES} is {element} {list(tensor.shape)}, not f32 {list(states.shape)}"
            )
        self.were_remote |= isinstance(tensor, RemoteTensor)
        self._transfers.of(ENCODER_STATES).host_to_device += states.nbytes
        states[...] = values_of(tensor)

    def _checked(self, name: str, value: AnyTensor) -> Tensor | RemoteTensor:
        if name not in _NAMES:
            raise TensorError(
                f"no input {name!r}; the inputs are {', '.join(_NAMES)}, the output is {LOGITS}"
            )
        return as_tensor(value)


def _check_positions(given: Array, positions: Array) -> None:
    """Check that the caller's cache positions match the positions of the tokens.

    Raises:
        TensorError: the positions differ.
    """
    if not np.array_equal(given.reshape(-1), positions):
        raise TensorError(
            f"{CACHE_POSITION} is {given.reshape(-1).tolist()[:8]}, but the tokens have positions "
            f"{positions.tolist()[:8]}"
        )
