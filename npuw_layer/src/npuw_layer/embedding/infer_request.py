"""Runs a model that reads texts, as OpenVINO's ``InferRequest`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npuw_layer.devices.report import devices_report
from npuw_layer.embedding.batch import texts_of
from npuw_layer.embedding.ports import TextPort, inputs_of, outputs_of, takes
from npuw_layer.embedding.reading import make_reader
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.names import BEAMS
from npuw_layer.model_port import PortKey, find_port
from npuw_layer.ports import Array
from npuw_layer.remote.tensor import AnyTensor, as_tensor, values_of
from npuw_layer.stateless_request import AnyInput, StatelessRequest


class TextInferRequest(StatelessRequest):
    """One user of a compiled model; nothing stays of a text when the next is read.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        self._inputs, self._outputs = inputs_of(compiled), outputs_of(compiled)
        super().__init__(self._outputs, compiled.options)
        self._compiled = compiled
        self._reader = make_reader(compiled, self._run.check_wanted)
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
            PromptTooLong: a text has more tokens than NPUW_LLM_MAX_PROMPT_LEN.
            NpuwError: as of any request (``StatelessRequest.infer``).
        """
        return super().infer(inputs)

    def execution_report(self) -> Mapping[str, str]:
        """How the last inference ran, for people."""
        return {
            "blobs": str(self._compiled.origin),
            "texts": "; ".join(self._runs) or "none",
            **devices_report(self._compiled.submodels),
        }

    def _input(self, key: PortKey, tensor: AnyTensor) -> tuple[str, AnyInput]:
        known = isinstance(key, str) and (key == BEAMS or takes(self._compiled, key))
        name = str(key) if known else find_port(self._inputs, key, "input").any_name
        return name, as_tensor(tensor)

    def _compute(self, inputs: Mapping[str, AnyInput]) -> dict[str, Array]:
        values = {name: values_of(one) for name, one in inputs.items() if name != BEAMS}
        self._runs = []
        every: list[Mapping[str, Array]] = []
        tokens = 0
        for text in texts_of(values, counts_text=self._compiled.options.text_rerank):
            tokens = len(values["input_ids"][0])
            every.append({name: v.copy() for name, v in self._reader.read(text).items()})
            self._runs.append(" + ".join(self._reader.runs))
        return {
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
