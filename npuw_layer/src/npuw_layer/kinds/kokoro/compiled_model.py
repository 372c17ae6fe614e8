"""A Kokoro ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from typing import BinaryIO

from npuw_layer.api.model_port import OpenPort
from npuw_layer.api.ready_model import ReadyModel
from npuw_layer.errors import OptionError
from npuw_layer.kinds.kokoro.compiled import CompiledKokoro
from npuw_layer.kinds.kokoro.infer_request import KokoroInferRequest
from npuw_layer.kinds.kokoro.ports import inputs_of, outputs_of
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.remote.context import RemoteContext


class KokoroCompiledModel(ReadyModel[CompiledKokoro, StaticPort, OpenPort]):
    """A text-to-speech model (NPUW_KOKORO)."""

    @property
    def inputs(self) -> list[StaticPort]:
        """Inputs of the exported model."""
        return inputs_of(self._compiled)

    @property
    def outputs(self) -> list[OpenPort]:
        """Outputs of the model: the audio, and the durations of tokens."""
        return outputs_of(self._compiled)

    def create_infer_request(self) -> KokoroInferRequest:
        """Create an independent request."""
        return KokoroInferRequest(self._compiled)

    def get_context(self) -> RemoteContext:
        """Return the context of the Core, whose tensors requests bind in place."""
        return RemoteContext(self._compiled.audio.npu)

    def _write(self, file: BinaryIO) -> None:
        raise OptionError(
            "NPUW_KOKORO = YES: export is not supported, as in NPUW; set CACHE_DIR to keep the "
            "compiled models"
        )
