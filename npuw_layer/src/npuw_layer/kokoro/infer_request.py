"""Runs a Kokoro, as OpenVINO's ``InferRequest`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuw_layer.async_run import AsyncRequest
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.kokoro.compiled import CompiledKokoro
from npuw_layer.kokoro.ports import inputs_of, outputs_of
from npuw_layer.kokoro.speaker import Speaker
from npuw_layer.model_port import ModelPort, PortKey, find_port, only_port
from npuw_layer.ports import Array
from npuw_layer.remote.properties import TensorType
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor
from npuw_layer.tensor import Tensor


class KokoroInferRequest(AsyncRequest):
    """One user of a compiled model; nothing stays of a text when the next is read.

    Args:
        compiled: both models.
    """

    def __init__(self, compiled: CompiledKokoro) -> None:
        super().__init__()
        self._compiled = compiled
        self._speaker = Speaker(compiled, self._run.check_wanted)
        self._inputs, self._outputs = inputs_of(compiled), outputs_of(compiled)
        self._set: dict[str, Tensor | RemoteTensor] = {}
        self._found: dict[str, Array] = {}

    def infer(self, inputs: Mapping[Any, AnyTensor] | None = None, /) -> dict[str, Array]:
        """Read a text aloud.

        Args:
            inputs: input_ids i64 [1, tokens], with 0 in front, behind the text, and as padding;
                ref_s f32 [1, 256], the voice; speed f32 [1]; by name, number or port. What is
                missing is taken from ``set_tensor``.

        Returns:
            The outputs by name: audio, as long as the text lasts, and durations [tokens].

        Raises:
            TensorError: an input is missing or does not fit.
            RemoteError: the memory of a remote tensor was freed.
            ModelError: the model says that the text lasts no frame, or far too many.
            RequestBusy: the request is running.
            InferenceCancelled: ``cancel`` was called meanwhile.
            DeviceError: a device failed.
        """

        def once() -> dict[str, Array]:
            self._infer(self._checked(inputs))
            return dict(self._found)

        return self._run.run(once)

    def start_async(
        self, inputs: Mapping[Any, AnyTensor] | None = None, /, userdata: Any = None
    ) -> None:
        """Begin one inference on the request's own thread; ``wait`` ends it.

        Args:
            inputs: as for ``infer``.
            userdata: for the callback, in place of what ``set_callback`` was given.

        Raises:
            RequestBusy, TensorError: as ``infer``; the rest is raised by ``wait``.
        """
        given: dict[str, Tensor | RemoteTensor] = {}
        self._start(
            lambda: self._infer(given), userdata, lambda: given.update(self._checked(inputs))
        )

    def cancel(self) -> None:
        """Give up the running inference before its next program runs."""
        self._run.cancel()

    def set_tensor(self, key: PortKey, tensor: AnyTensor, /) -> None:
        """Set an input for the next inferences; its values are read at each.

        Raises:
            TensorError: there is no such input, or the tensor does not fit.
            RemoteError: the tensor was made for outputs.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        self._set |= self._checked({key: tensor})

    def get_tensor(self, key: PortKey, /) -> Tensor | RemoteTensor:
        """Give what an input was set to, or an output of the last inference.

        Raises:
            TensorError: there is none of that name.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        name = key.any_name if isinstance(key, ModelPort) else key
        if name in self._found:
            return Tensor(self._found[str(name)])
        if name in self._set:
            return self._set[str(name)]
        raise TensorError(f"no tensor {name!r} yet")

    def get_output_tensor(self, index: int | None = None, /) -> Tensor | RemoteTensor:
        """Give an output of the last inference: 0 is the audio, 1 the durations."""
        return self.get_tensor(only_port(self._outputs, index, "output"))

    def query_state(self) -> Sequence[Any]:
        """Nothing: no state outlives an inference, as in the original."""
        self._run.check_idle()
        return []

    def reset_state(self) -> None:
        """Nothing is to be forgotten."""
        self._run.check_idle()

    def execution_report(self) -> Mapping[str, str]:
        """How the last inference ran, for people."""
        return {"blobs": str(self._compiled.origin), "text": self._speaker.runs or "none"}

    def _checked(self, inputs: Mapping[Any, AnyTensor] | None) -> dict[str, Tensor | RemoteTensor]:
        """Name the tensors that are given."""
        return dict(self._input(key, tensor) for key, tensor in (inputs or {}).items())

    def _input(self, key: PortKey, tensor: AnyTensor) -> tuple[str, Tensor | RemoteTensor]:
        port, given = find_port(self._inputs, key, "input"), as_tensor(tensor)
        if isinstance(given, Tensor):
            port.check_array(given.data)
        else:
            port.check(given.element_type, given.shape)
            if given.properties.tensor_type is TensorType.OUTPUT:
                raise RemoteError(
                    f"{port.any_name!r} is an input; the tensor was made with TENSOR_TYPE OUTPUT"
                )
        return port.any_name, given

    def _infer(self, given: Mapping[str, Tensor | RemoteTensor]) -> None:
        tensors = {**self._set, **given}
        missing = [port.any_name for port in self._inputs if port.any_name not in tensors]
        if missing:
            raise TensorError(f"not set: {', '.join(missing)}")
        self._found = {}
        audio, durations = self._speaker.speak(tensors)
        sound, lasting = self._outputs
        self._found = {sound.any_name: audio, lasting.any_name: durations}
