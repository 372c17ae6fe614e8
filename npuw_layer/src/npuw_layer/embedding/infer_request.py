"""Runs a model that reads texts, as OpenVINO's ``InferRequest`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npuw_layer.async_run import AsyncRequest
from npuw_layer.embedding.batch import texts_of
from npuw_layer.embedding.ports import TextPort, inputs_of, outputs_of, takes
from npuw_layer.embedding.reading import make_reader
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.names import BEAMS
from npuw_layer.model_port import ModelPort, PortKey, find_port, only_port
from npuw_layer.ports import Array
from npuw_layer.remote.properties import TensorType
from npuw_layer.remote.tensor import AnyTensor, RemoteTensor, as_tensor, values_of
from npuw_layer.tensor import Tensor


class TextInferRequest(AsyncRequest):
    """One user of a compiled model; nothing stays of a text when the next is read.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        super().__init__()
        self._compiled = compiled
        self._reader = make_reader(compiled, self._run.check_wanted)
        self._inputs, self._outputs = inputs_of(compiled), outputs_of(compiled)
        self._set: dict[str, Tensor | RemoteTensor] = {}
        self._found: dict[str, Array] = {}
        self._runs: list[str] = []

    def infer(self, inputs: Mapping[Any, AnyTensor] | None = None, /) -> dict[str, Array]:
        """Read texts.

        Args:
            inputs: input_ids, attention_mask and, if the model has them, token_type_ids and
                position_ids, i64 [texts, n], by name or number; beam_idx is ignored. Texts end
                where their last token is masked in. What is missing is taken from ``set_tensor``.

        Returns:
            The outputs by name: last_hidden_state f32 [texts, n, channels], 0 for what is behind a
            text; of what ranks texts, logits [texts, …].

        Raises:
            TensorError: an input is missing or does not fit.
            RemoteError: the memory of a remote tensor was freed.
            PromptTooLong: a text has more tokens than NPUW_LLM_MAX_PROMPT_LEN.
            RequestBusy: the request is running.
            InferenceCancelled: ``cancel`` was called meanwhile.
            DeviceError: the device failed.
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
            TensorError: there is no such input, or it is no tensor.
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
        """Give an output of the last inference; the only one without an index."""
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
        return {
            "blobs": str(self._compiled.origin),
            "texts": "; ".join(self._runs) or "none",
        }

    def _checked(self, inputs: Mapping[Any, AnyTensor] | None) -> dict[str, Tensor | RemoteTensor]:
        """Name the tensors that are given."""
        return dict(self._input(key, tensor) for key, tensor in (inputs or {}).items())

    def _input(self, key: PortKey, tensor: AnyTensor) -> tuple[str, Tensor | RemoteTensor]:
        known = isinstance(key, str) and (key == BEAMS or takes(self._compiled, key))
        name = str(key) if known else find_port(self._inputs, key, "input").any_name
        given = as_tensor(tensor)
        if isinstance(given, RemoteTensor) and given.properties.tensor_type is TensorType.OUTPUT:
            raise RemoteError(f"{name!r} is an input; the tensor was made with TENSOR_TYPE OUTPUT")
        return name, given

    def _infer(self, given: Mapping[str, Tensor | RemoteTensor]) -> None:
        tensors = {**self._set, **given}
        values = {name: values_of(one) for name, one in tensors.items() if name != BEAMS}
        self._found = {}
        self._runs = []
        every: list[Mapping[str, Array]] = []
        tokens = 0
        for text in texts_of(values, counts_text=self._compiled.options.text_rerank):
            tokens = len(values["input_ids"][0])
            every.append({name: v.copy() for name, v in self._reader.read(text).items()})
            self._runs.append(" + ".join(self._reader.runs))
        self._found = {
            port.any_name: _joined(port, [found[port.any_name] for found in every], tokens)
            for port in self._outputs
        }


def _joined(port: TextPort, rows: Sequence[Array], tokens: int) -> Array:
    """Make a batch of what came of each text, with 0 behind the shorter ones."""
    if port.partial_shape[1:2] != (-1,):
        return np.concatenate(rows)
    whole = np.zeros((len(rows), tokens, *rows[0].shape[2:]), rows[0].dtype)
    for number, row in enumerate(rows):
        whole[number, : row.shape[1]] = row[0]
    return whole
