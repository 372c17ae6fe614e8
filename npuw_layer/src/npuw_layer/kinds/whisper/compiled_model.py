"""A Whisper decoder ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from typing import NoReturn

from npuw_layer.api.model_port import OpenPort
from npuw_layer.errors import OptionError
from npuw_layer.kinds.llm.compiled_model import CompiledModel
from npuw_layer.kinds.whisper.infer_request import WhisperInferRequest
from npuw_layer.kinds.whisper.input_ports import inputs_of
from npuw_layer.kinds.whisper.options import WhisperOptions
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.tensors.names import LOGITS


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
