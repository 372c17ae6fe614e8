"""Models without state, run for inputs of any shape; one of them has embeddings of token ids."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from genai_layer.abilities import ReshapesModels
from genai_layer.errors import runtime_failures
from genai_layer.runtime import AnyModel, Array, Core, InferRequest

_Shapes = tuple[tuple[int, ...], ...]

_KEPT = 8
"""Number of shapes whose static models are kept."""


class ShapedModel:
    """Model without state.

    A runtime that runs only static models compiles one for each shape of the inputs; those of the
    latest shapes are kept.

    Args:
        core: the runtime.
        name: name of the model for messages.
        model: the IR.
        device: the device.
        properties: of the runtime.

    Raises:
        RuntimeFailure: the runtime cannot compile the model.
    """

    def __init__(
        self, core: Core, name: str, model: AnyModel, device: str, properties: Mapping[str, Any]
    ) -> None:
        self._core = core
        self._name = name
        self._model = model
        self._device = device
        self._properties = properties
        self._static = OrderedDict[_Shapes, InferRequest]()
        self._dynamic: InferRequest | None = None
        if not isinstance(core, ReshapesModels):
            with runtime_failures():
                compiled = core.compile_model(model, device, properties)
                self._dynamic = compiled.create_infer_request()

    def run(self, inputs: Mapping[str, Array], output: str) -> Array:
        """Run the model; return a copy of an output. Errors as ``run_for``."""
        return self.run_for(inputs, [output])[0]

    def run_for(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Run the model; return copies of several outputs.

        Raises:
            RuntimeFailure: the runtime cannot compile the model for these shapes, or it failed.
        """
        with runtime_failures(self._name):
            request = self._request(inputs) if self._dynamic is None else self._dynamic
            request.infer(inputs)
            return [np.array(request.get_tensor(name).data) for name in outputs]

    def _request(self, inputs: Mapping[str, Array]) -> InferRequest:
        key = tuple(values.shape for values in inputs.values())
        if key not in self._static:
            assert isinstance(self._core, ReshapesModels)  # else the model is dynamic
            shapes = {name: values.shape for name, values in inputs.items()}
            given = self._model, self._device, self._properties, shapes
            self._static[key] = self._core.compile_reshaped(*given).create_infer_request()
            if len(self._static) > _KEPT:
                self._static.popitem(last=False)
        self._static.move_to_end(key)
        return self._static[key]


_PART = 64
"""Number of ids per inference: a runtime of static models compiles a single one."""


class TextEmbeddings:
    """Embedding table of a language model.

    Args:
        model: the model with the table.
    """

    def __init__(self, model: ShapedModel) -> None:
        self._model = model

    def embed(self, ids: npt.NDArray[np.int64]) -> Array:
        """Return the embeddings f32 [n, width] of ids i64 [n].

        Raises:
            RuntimeFailure: the runtime failed.
        """
        padded = np.pad(ids, (0, -len(ids) % _PART)).reshape(-1, 1, _PART)
        parts = [self._model.run({"input": part}, "inputs_embeds")[0] for part in padded]
        return np.concatenate(parts)[: len(ids)]
