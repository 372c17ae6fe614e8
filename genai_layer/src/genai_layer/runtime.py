"""Interface to the runtime below genai, for language models.

Shapes and names are OpenVINO's. npuw_layer satisfies these protocols as it is, the real
``openvino`` once rewinding is added. The interface is independent of devices, KV layouts and blobs.

A *stateful* language model has the inputs ``input_ids`` i64 [B, n], ``attention_mask`` i64
[B, past + n], ``position_ids`` i64 [B, n] and ``beam_idx`` i32 [B], and the output ``logits`` f32
[B, m, vocabulary] where m is n or 1: the last logits always belong to the last token. The model
keeps state between inferences; ``reset_state`` clears it.

Inferences may rewind: if mask and positions begin again after fewer tokens than are stored, later
tokens are forgotten. If the model was compiled with NPUW_LLM_MAX_GENERATION_TOKEN_LEN = G, or for a
device without static programs, m is n for up to G tokens that follow stored ones. With
NPUW_LLM_ON_FULL = SLIDE, a prompt may have any number of tokens. If the compiled model's property
NPUW_LLM_CONTINUOUS_PREFILL_SUPPORTED is True, any number of tokens may follow stored ones; else at
most G.

Row b continues the state of row ``beam_idx[b]`` of the last inference, so rows are copied, dropped
and reordered by ``beam_idx`` alone: one prompt is read as one row, and ``beam_idx`` [0, 0, 0]
continues it in three ways. The first inference after ``reset_state`` may have any number of rows,
with ``beam_idx`` 0 to B - 1. All rows of an inference have the same number of tokens.

``abilities`` has what a runtime may offer beyond this.

Source: openvino.Core, CompiledModel, InferRequest, VariableState (OpenVINO Python API 2026).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from genai_layer.tensor import HasData

Array = npt.NDArray[Any]

CONTINUES = "NPUW_LLM_CONTINUOUS_PREFILL_SUPPORTED"
"""Property of a compiled model; see above."""


class Tensor(Protocol):
    """Tensor of a request; ``data`` is a view that the next inference may overwrite."""

    @property
    def data(self) -> Array:
        """The values as a numpy array of the tensor's shape and type."""
        ...


class VariableState(Protocol):
    """Variable of a stateful model, e.g. a K or V cache."""

    @property
    def name(self) -> str:
        """The variable's id, as in the model's ReadValue and Assign."""
        ...

    def reset(self) -> None:
        """Reset the value: the next inference starts from the initial state."""
        ...


class InferRequest(Protocol):
    """Tensors and state of a conversation, or of several rows, with a compiled model.

    Two requests of one compiled model share nothing that an inference changes.
    """

    def infer(self, inputs: Mapping[str, Array], /) -> object:
        """Run one inference synchronously.

        Mask and positions count all tokens of the conversation, including those that a full cache
        has forgotten (NPUW_LLM_ON_FULL).

        Raises:
            RuntimeError: the inputs do not fit the model or its capacity, or the device failed;
                the message is for the user. The request stays usable after ``reset_state``.
        """
        ...

    def start_async(self, inputs: Mapping[str, Array], /) -> None:
        """Begin one inference; the inputs must not change before ``wait`` returns."""
        ...

    def wait(self) -> None:
        """Block until the inference begun by ``start_async`` has ended; raise as ``infer`` does."""
        ...

    def get_tensor(self, name: str, /) -> Tensor:
        """Return an input or output tensor by name."""
        ...

    def query_state(self) -> Sequence[VariableState]:
        """Return the variables."""
        ...

    def reset_state(self) -> None:
        """Clear the state: a new conversation begins."""
        ...


class CompiledModel(Protocol):
    """Model ready to run on one device."""

    def create_infer_request(self) -> InferRequest:
        """Create an independent request."""
        ...

    def get_property(self, name: str, /) -> Any:
        """Return an option of the model, by OpenVINO's name.

        Raises:
            RuntimeError: the model has no such option.
        """
        ...


AnyModel = Any
"""Model for a runtime to compile: the path of an ``openvino_model.xml``; if the runtime supports
it, that of a Hugging Face folder; or a result of ``Core.read_model``."""


@runtime_checkable
class Core(Protocol):
    """Compiler of models for devices."""

    def read_model(self, model: str, weights: HasData, /) -> AnyModel:
        """Return a model in memory, for this runtime's ``compile_model``.

        Args:
            model: content of an ``openvino_model.xml``.
            weights: content of the ``.bin``, u8 [n].

        Raises:
            RuntimeError: the model cannot be read; the message is for the user.
        """
        ...

    def compile_model(
        self, model: AnyModel, device_name: str, config: Mapping[str, Any], /
    ) -> CompiledModel:
        """Compile a model for a device.

        Args:
            model: see ``AnyModel``.
            device_name: "NPU", "CPU" …
            config: options under OpenVINO's names.

        Raises:
            RuntimeError: the model cannot be compiled; the message is for the user.
        """
        ...


def last_logits(request: InferRequest) -> npt.NDArray[np.float32]:
    """Return a copy of the last token's logits, f32 [vocabulary]."""
    return np.array(request.get_tensor("logits").data[0, -1], dtype=np.float32)
