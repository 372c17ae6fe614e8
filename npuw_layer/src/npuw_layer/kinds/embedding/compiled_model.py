"""A model that reads texts, and its requests, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npuw_layer.api.model_port import OPEN, OpenPort, PortKey, find_port
from npuw_layer.api.stateless_request import AnyInput, StatelessRequest
from npuw_layer.backends.protocols import Array, TensorInfo
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.kinds.embedding.batch import texts_of
from npuw_layer.kinds.embedding.options import TextOptions
from npuw_layer.kinds.embedding.reading import ChunkReader, UnchunkedReader, reads_in_chunks
from npuw_layer.kinds.llm.compiled_model import SplitModel
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.remote.tensor import values_of
from npuw_layer.tensors.names import BEAMS, EMBED, IDS, LAST_HIDDEN_STATE, LOGITS, MASK, POSITIONS
from npuw_layer.traits.images.trait import TOKEN_TYPES

_TEXT_INPUTS = (IDS, MASK, TOKEN_TYPES, POSITIONS)
"""Inputs that models read texts from, in order."""


class TextCompiledModel(SplitModel):
    """A model that reads texts and generates nothing (NPUW_TEXT_EMBED, NPUW_TEXT_RERANK)."""

    @property
    def inputs(self) -> list[OpenPort]:
        """Inputs of the exported model.

        An embedding model that is read in chunks takes position_ids even if the exported model does
        not; setting them is optional, so they are not listed.
        """
        compiled = self._compiled
        taken = {info.name for info in compiled.models[compiled.plan.prefill[0]].inputs}
        if self._embeds and reads_in_chunks(compiled):
            taken -= {POSITIONS}
        shown = [name for name in _TEXT_INPUTS if name in taken]
        return [OpenPort(name, "i64", index, (OPEN, OPEN)) for index, name in enumerate(shown)]

    @property
    def outputs(self) -> list[OpenPort]:
        """Outputs of the exported model, by their names in the model."""
        compiled = self._compiled
        stage, heads = compiled.plan.prefill[0], compiled.plan.own_heads
        outputs = compiled.models[stage].outputs
        if not reads_in_chunks(compiled):
            return [
                OpenPort(info.name, info.element, index, _opened(info, stage.tokens))
                for index, info in enumerate(outputs)
            ]
        if self._embeds:
            width = _of_name(outputs, EMBED).shape[-1]
            return [OpenPort(LAST_HIDDEN_STATE, "f32", 0, (OPEN, OPEN, width))]
        made = compiled.models[heads[0]].outputs if heads else outputs
        return [OpenPort(LOGITS, "f32", 0, (OPEN, 1, _of_name(made, LOGITS).shape[-1]))]

    def create_infer_request(self) -> TextInferRequest:
        """Create an independent request."""
        return TextInferRequest(self._compiled, self.inputs, self.outputs)

    @property
    def _embeds(self) -> bool:
        return self._compiled.options.group(TextOptions).text_embed


def _opened(info: TensorInfo, tokens: int) -> tuple[int, ...]:
    of_tokens = len(info.shape) > 2 and info.shape[1] == tokens
    return (OPEN, OPEN, *info.shape[2:]) if of_tokens else (OPEN, *info.shape[1:])


def _of_name(infos: Sequence[TensorInfo], name: str) -> TensorInfo:
    return next(info for info in infos if info.name == name)


class TextInferRequest(StatelessRequest[OpenPort, OpenPort]):
    """Request of a compiled model; texts are independent of one another.

    An inference takes input_ids, attention_mask and, if the model has them, token_type_ids and
    position_ids, i64 [texts, n]; beam_idx is ignored. A text ends at its last unmasked token. It
    returns last_hidden_state f32 [texts, n, channels], 0 behind the end of a text; logits [texts,
    …] of reranking models. PromptTooLong is raised if a text has more tokens than
    NPUW_LLM_MAX_PROMPT_LEN.

    Args:
        compiled: the static models.
        inputs, outputs: ports of the model.
    """

    def __init__(
        self, compiled: CompiledLLM, inputs: Sequence[OpenPort], outputs: Sequence[OpenPort]
    ) -> None:
        super().__init__(compiled.options, inputs, outputs)
        self._compiled, self._vocabulary = compiled, compiled.vocabulary
        reader = ChunkReader if reads_in_chunks(compiled) else UnchunkedReader
        self._reader = reader(compiled, self._run.check_wanted)
        self._runs: list[str] = []

    def execution_report(self) -> Mapping[str, str]:
        """Return a readable report of the last inference."""
        return {
            "blobs": str(self._compiled.origin),
            "texts": "; ".join(self._runs) or "none",
            **devices_report(self._compiled.submodels),
        }

    def _input(self, key: PortKey, tensor: AnyInput) -> tuple[str, AnyInput]:
        known = isinstance(key, str) and (key == BEAMS or self._takes(key))
        name = str(key) if known else find_port(self._inputs, key, "input").any_name
        return name, tensor

    def _takes(self, name: str) -> bool:
        """Return whether an input can be set, even if it is not listed."""
        inputs = self._compiled.models[self._compiled.plan.prefill[0]].inputs
        return name in _TEXT_INPUTS and any(info.name == name for info in inputs)

    def _compute(self, inputs: Mapping[str, AnyInput]) -> dict[str, Array]:
        values = {name: values_of(one) for name, one in inputs.items() if name != BEAMS}
        self._runs = []
        every: list[Mapping[str, Array]] = []
        tokens = 0
        counts_text = self._compiled.options.group(TextOptions).text_rerank
        for text in texts_of(values, counts_text, self._vocabulary):
            tokens = len(values[IDS][0])
            every.append({name: v.copy() for name, v in self._reader.read(text).items()})
            self._runs.append(" + ".join(self._reader.runs))
        return {
            port.any_name: _joined(port, [found[port.any_name] for found in every], tokens)
            for port in self._outputs
        }


def _joined(port: OpenPort, rows: Sequence[Array], tokens: int) -> Array:
    """Join the outputs of texts into a batch, with 0 behind shorter texts."""
    if port.partial_shape[1:2] != (OPEN,):
        return np.concatenate(rows)
    whole = np.zeros((len(rows), tokens, *rows[0].shape[2:]), rows[0].dtype)
    for number, row in enumerate(rows):
        whole[number, : row.shape[1]] = row[0]
    return whole
