"""A request of a Whisper decoder: what OpenVINO's ``InferRequest`` offers, for one text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from npuw_layer.api.model_port import OpenPort, PortKey
from npuw_layer.api.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.kinds.whisper.conversation import WhisperConversation
from npuw_layer.kinds.whisper.input_ports import WhisperInputPorts, inputs_of
from npuw_layer.kinds.whisper.names import SCORES
from npuw_layer.kinds.whisper.variable_state import CrossVariableState
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.infer_request import AnyState, InferRequest
from npuw_layer.remote.tensor import RemoteTensor

_UNSAVED = (
    "the text of a Whisper decoder is not saved: it goes on over audio that the file would be "
    "without; begin anew with encoder_hidden_states"
)


class WhisperInferRequest(InferRequest):
    """One text; two requests of a compiled model share nothing that changes results.

    An inference takes input_ids i64 [1, n], and with a prompt encoder_hidden_states f32 [1, frames,
    channels]; beam_idx is ignored, cache_position checked. Several tokens, and the first one after
    ``reset_state``, are a prompt over new audio; a single one goes on. It gives logits f32 [1, n,
    V]; the last position's choose NPUW_WHISPER_EOS_TOKEN.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        super().__init__(compiled)

    @property
    def model_inputs(self) -> Sequence[OpenPort]:
        """Its inputs, as it was exported with."""
        return inputs_of(self._compiled)

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Give an input, the logits, or what the last prompt attended to.

        Raises:
            TensorError: there is none of that name.
            RequestBusy: the request is running.
        """
        if not isinstance(key, str) or not key.startswith(SCORES):
            return super().get_tensor(key)
        self._run.check_idle()
        return Tensor(np.array(self._talk.scores(key)))

    def query_state(self) -> Sequence[AnyState]:
        """The variables: each layer's K and V of the text, then those of the audio."""
        own = super().query_state()
        talk, check = self._talk, self._run.check_idle
        return [*own, *(CrossVariableState(name, talk, check) for name in talk.audio.names)]

    def save_state(self, path: str | Path, /) -> None:
        """Refuse.

        Raises:
            StateError: always.
        """
        raise StateError(_UNSAVED)

    def load_state(self, path: str | Path, /) -> None:
        """Refuse.

        Raises:
            StateError: always.
        """
        raise StateError(_UNSAVED)

    def _make_conversation(self) -> WhisperConversation:
        self._talk = WhisperConversation(self._compiled, self._run.check_wanted)
        return self._talk

    def _make_inputs(self) -> WhisperInputPorts:
        return WhisperInputPorts(self._talk, self.transfers)
