"""A Kokoro ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from dataclasses import replace

from npuw_layer.api.model_port import OPEN, OpenPort
from npuw_layer.kinds.kokoro.compiled import CompiledKokoro
from npuw_layer.kinds.kokoro.infer_request import KokoroInferRequest
from npuw_layer.kinds.kokoro.names import ASR_BLOCK, EN_BLOCK, INPUT_LENGTHS, OPTION, TEXT_MASK
from npuw_layer.kinds.static.parts import PartsModel
from npuw_layer.kinds.static.port import StaticPort

_BETWEEN = (TEXT_MASK, INPUT_LENGTHS, EN_BLOCK, ASR_BLOCK)
"""Inputs that the host fills."""


class KokoroCompiledModel(PartsModel[CompiledKokoro, StaticPort, OpenPort]):
    """A text-to-speech model (NPUW_KOKORO)."""

    option = OPTION

    @property
    def inputs(self) -> list[StaticPort]:
        """Inputs of the exported model: those of both models that the host does not fill."""
        every = (port for part in self._compiled.parts for port in part.inputs)
        found: dict[str, StaticPort] = {}
        for port in every:
            if port.any_name not in _BETWEEN:
                found.setdefault(port.any_name, port)
        return [replace(port, index=index) for index, port in enumerate(found.values())]

    @property
    def outputs(self) -> list[OpenPort]:
        """Outputs of the model: the audio, and the durations of tokens."""
        sound, lasting = self._compiled.sound, self._compiled.lasting
        return [
            OpenPort(sound.any_name, sound.element_type, 0, (*sound.shape[:-1], OPEN)),
            OpenPort(lasting.any_name, lasting.element_type, 1, lasting.shape),
        ]

    def create_infer_request(self) -> KokoroInferRequest:
        """Create an independent request."""
        return KokoroInferRequest(self._compiled, self.inputs, self.outputs)
