"""A Kokoro ready to run, and its requests, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from npuw_layer.api.model_port import OPEN, OpenPort, PortKey, find_port
from npuw_layer.api.stateless_request import AnyInput, StatelessRequest
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.kinds.kokoro.compiled import CompiledKokoro
from npuw_layer.kinds.kokoro.names import ASR_BLOCK, EN_BLOCK, INPUT_LENGTHS, OPTION, TEXT_MASK
from npuw_layer.kinds.kokoro.speaker import Speaker
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


class KokoroInferRequest(StatelessRequest[StaticPort, OpenPort]):
    """Request of a compiled model; texts are independent of one another.

    An inference takes input_ids i64 [1, tokens], with 0 in front, behind the text, and as padding;
    ref_s f32 [1, 256], the voice; and speed f32 [1]. It returns the audio, as long as the text
    lasts, and durations [tokens]. ModelError is raised if the durations sum up to no frame, or far
    too many.

    Args:
        compiled: both models.
        inputs, outputs: ports of the model.
    """

    def __init__(
        self, compiled: CompiledKokoro, inputs: Sequence[StaticPort], outputs: Sequence[OpenPort]
    ) -> None:
        super().__init__(compiled.options, inputs, outputs)
        self._compiled = compiled
        self._speaker = Speaker(compiled, self._run.check_wanted)

    def execution_report(self) -> Mapping[str, str]:
        """Return a readable report of the last inference."""
        compiled = self._compiled
        report = {"blobs": str(compiled.origin), "text": self._speaker.runs or "none"}
        return report | devices_report(compiled.submodels)

    def _input(self, key: PortKey, tensor: AnyInput) -> tuple[str, AnyInput]:
        port = find_port(self._inputs, key, "input")
        port.check_tensor(tensor)
        return port.any_name, tensor

    def _compute(self, inputs: Mapping[str, AnyInput]) -> dict[str, Array]:
        missing = [port.any_name for port in self._inputs if port.any_name not in inputs]
        if missing:
            raise TensorError(f"not set: {', '.join(missing)}")
        audio, durations = self._speaker.speak(inputs)
        sound, lasting = self._outputs
        return {sound.any_name: audio, lasting.any_name: durations}
