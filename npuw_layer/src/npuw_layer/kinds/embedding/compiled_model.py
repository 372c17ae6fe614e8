"""A model that reads texts, ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from npuw_layer.api.model_port import OpenPort
from npuw_layer.kinds.embedding.infer_request import TextInferRequest
from npuw_layer.kinds.embedding.ports import inputs_of, outputs_of
from npuw_layer.kinds.llm.compiled_model import SplitModel


class TextCompiledModel(SplitModel):
    """A model that reads texts and generates nothing (NPUW_TEXT_EMBED, NPUW_TEXT_RERANK)."""

    @property
    def inputs(self) -> list[OpenPort]:
        """Inputs of the exported model."""
        return inputs_of(self._compiled)

    @property
    def outputs(self) -> list[OpenPort]:
        """Outputs of the exported model."""
        return outputs_of(self._compiled)

    def create_infer_request(self) -> TextInferRequest:
        """Create an independent request."""
        return TextInferRequest(self._compiled)
