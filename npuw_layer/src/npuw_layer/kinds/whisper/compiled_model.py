"""A Whisper decoder ready to run, and its requests, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from npuw_layer.api.model_port import OpenPort, PortKey
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import OptionError, StateError
from npuw_layer.kinds.llm.compiled_model import CompiledModel
from npuw_layer.kinds.whisper.conversation import WhisperConversation
from npuw_layer.kinds.whisper.input_ports import WhisperInputPorts, inputs_of
from npuw_layer.kinds.whisper.options import WhisperOptions
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.infer_request import InferRequest
from npuw_layer.llm.request.model_ports import outputs_of
from npuw_layer.remote.tensor import RemoteTensor
from npuw_layer.tensors.names import LOGITS
from npuw_layer.traits.cross_attention.names import SCORES

_UNSAVED = (
    "a Whisper decoder's text cannot be saved, as the file would not hold its audio; start again "
    "with encoder_hidden_states"
)


class WhisperModel(CompiledModel):
    """A Whisper decoder ready to run.

    Args:
        compiled: the decoder's static models.

    Raises:
        OptionError: NPUW_WHISPER_EOS_TOKEN is not a token of the model.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        super().__init__(compiled)
        outputs = (info for model in compiled.models.values() for info in model.outputs)
        tokens = next(info.shape[-1] for info in outputs if info.name == LOGITS)
        eos = compiled.options.group(WhisperOptions).whisper_eos_token
        if eos >= tokens:
            raise OptionError(
                f"NPUW_WHISPER_EOS_TOKEN = {eos}: the model has {tokens} tokens; set it to the "
                "eos_token_id of its generation_config.json"
            )

    @property
    def inputs(self) -> list[OpenPort]:
        """Inputs of the exported model."""
        return inputs_of(self._compiled)

    def create_infer_request(self) -> WhisperInferRequest:
        """Begin an independent text."""
        return WhisperInferRequest(self._compiled)

    def create_batching(self, places: int = 0) -> NoReturn:
        """Reject batching.

        Raises:
            OptionError: always.
        """
        del places
        raise OptionError("NPUW_WHISPER = YES: batching is not supported; use one request per text")


class WhisperInferRequest(InferRequest):
    """One text; requests of a compiled model are independent of one another.

    An inference takes input_ids i64 [1, n], and for a prompt encoder_hidden_states f32 [1, frames,
    channels]; beam_idx is ignored, cache_position checked. Several tokens, and the first one after
    ``reset_state``, are a prompt over new audio; a single one continues the text. It returns logits
    f32 [1, n, V]; those of the last position select NPUW_WHISPER_EOS_TOKEN.

    Args:
        compiled: the static models.
    """

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Return an input, the logits, or attention scores of the last prompt.

        Raises:
            TensorError: no such tensor exists.
            RequestBusy: the request is running.
        """
        if not isinstance(key, str) or not key.startswith(SCORES):
            return super().get_tensor(key)
        self._run.check_idle()
        return Tensor(np.array(self._talk.scores(key)))

    def save_state(self, path: str | Path, /) -> None:
        """Reject saving.

        Raises:
            StateError: always.
        """
        raise StateError(_UNSAVED)

    def load_state(self, path: str | Path, /) -> None:
        """Reject loading.

        Raises:
            StateError: always.
        """
        raise StateError(_UNSAVED)

    def _make_conversation(self) -> WhisperConversation:
        self._talk = WhisperConversation(self._compiled, self._run.check_wanted)
        return self._talk

    def _make_ports(self) -> tuple[Sequence[OpenPort], Sequence[OpenPort]]:
        return inputs_of(self._compiled), outputs_of(self._compiled)

    def _make_inputs(self) -> WhisperInputPorts:
        return WhisperInputPorts(self._talk, self.transfers)
