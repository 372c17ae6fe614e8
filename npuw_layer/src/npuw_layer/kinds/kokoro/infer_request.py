"""Inference request of a Kokoro, like OpenVINO's ``InferRequest``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuw_layer.api.model_port import OpenPort, PortKey, find_port
from npuw_layer.api.stateless_request import AnyInput, StatelessRequest
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.kinds.kokoro.compiled import CompiledKokoro
from npuw_layer.kinds.kokoro.speaker import Speaker
from npuw_layer.kinds.static.port import StaticPort


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
