"""A model that reads texts, ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.api.model_port import OPEN, OpenPort
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.kinds.embedding.infer_request import TEXT_INPUTS, TextInferRequest
from npuw_layer.kinds.embedding.options import TextOptions
from npuw_layer.kinds.embedding.reading import reads_in_chunks
from npuw_layer.kinds.llm.compiled_model import SplitModel
from npuw_layer.tensors.names import EMBED, LAST_HIDDEN_STATE, LOGITS, POSITIONS


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
        shown = [name for name in TEXT_INPUTS if name in taken]
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
