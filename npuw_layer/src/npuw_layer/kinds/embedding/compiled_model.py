"""A model that reads texts, ready to run, as OpenVINO's Python API gives it."""

from __future__ import annotations

from npuw_layer.api.model_port import OpenPort
from npuw_layer.kinds.embedding.infer_request import TextInferRequest
from npuw_layer.kinds.embedding.ports import inputs_of, outputs_of
from npuw_layer.kinds.llm.compiled_model import SplitModel


class TextCompiledModel(SplitModel):
    """A model that reads texts and generates nothing (NPUW_TEXT_EMBED, NPUW_TEXT_RERANK)."""

    @property
    def inputs(self) -> list[OpenPort]:
        """Its inputs, as it was exported with."""
        return inputs_of(self._compiled)

    @property
    def outputs(self) -> list[OpenPort]:
        """Its outputs, as it was exported with."""
        return outputs_of(self._compiled)

    def create_infer_request(self) -> TextInferRequest:
        """Make a request, independent of all others."""
        return TextInferRequest(self._compiled)
