"""Interface to the runtime below genai, for language models.

Shapes and names are OpenVINO's, so the real ``openvino`` package satisfies these protocols without
an adapter, as npuw_layer does. The interface is independent of devices, KV layouts and blobs.

A *stateful* language model has the inputs ``input_ids`` i64 [B, n], ``attention_mask`` i64
[B, past + n], ``position_ids`` i64 [B, n] and ``beam_idx`` i32 [B], and the output ``logits`` f32
[B, m, vocabulary] where m is n or 1: the last logits always belong to the last token. The model
keeps state between inferences; ``reset_state`` clears it.

Inferences may rewind: if mask and positions begin again after fewer tokens than are stored, later
tokens are forgotten. If the model was compiled with NPUW_LLM_MAX_GENERATION_TOKEN_LEN = G, or for a
device without static programs, m is n for up to G tokens that follow stored ones.

Row b continues the state of row ``beam_idx[b]`` of the last inference, so rows are copied, dropped
and reordered by ``beam_idx`` alone: one prompt is read as one row, and ``beam_idx`` [0, 0, 0]
continues it in three ways. The first inference after ``reset_state`` may have any number of rows,
with ``beam_idx`` 0 to B - 1. All rows of an inference have the same number of tokens.

Source: openvino.Core, CompiledModel, InferRequest, VariableState (OpenVINO Python API 2026).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from genai_layer.tensor import HasData

Array = npt.NDArray[Any]


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


class Port(Protocol):
    """Input or output of a compiled model."""

    def get_names(self) -> set[str]:
        """Return the names of the port."""
        ...


@runtime_checkable
class ListsInputs(Protocol):
    """Compiled model that lists its inputs, as models of texts must."""

    @property
    def inputs(self) -> Sequence[Port]:
        """Input ports, without variables."""
        ...


@runtime_checkable
class ReportsExecution(Protocol):
    """Optional ability of a request: a short report on the last generation.

    Keys and values are displayed unchanged, e.g. ``{"KV variant": "256 of 1152"}``.
    """

    def execution_report(self) -> Mapping[str, str]:
        """Return facts on the last generation, in display order."""
        ...


@runtime_checkable
class ReshapesModels(Protocol):
    """Ability of a core that runs only static models: compiling models for given shapes."""

    def compile_reshaped(
        self,
        model: AnyModel,
        device_name: str,
        config: Mapping[str, Any],
        shapes: Mapping[str, Sequence[int]],
        /,
    ) -> CompiledModel:
        """Compile a model as ``Core.compile_model`` does, for given shapes of its inputs.

        Args:
            model: see ``Core.compile_model``.
            device_name: see ``Core.compile_model``.
            config: see ``Core.compile_model``.
            shapes: shapes by input name.

        Raises:
            RuntimeError: see ``Core.compile_model``; or the model does not accept the shapes.
        """
        ...


@dataclass(frozen=True, slots=True)
class LowRank:
    """Low-rank term that adapters add to a matmul y = x Wᵀ: ((x Aᵀ) · alpha) Bᵀ."""

    a: Array
    """A [rank, in], f32 or f16."""
    alpha: Array
    """Alpha f32 [1, rank]."""
    b: Array
    """B [out, rank], of A's type."""


@runtime_checkable
class SupportsAdapters(Protocol):
    """Optional ability of a core: compiling models with LoRA adapters."""

    def adaptable_matmuls(self, model: AnyModel, /) -> Mapping[str, tuple[int, int]]:
        """Return the matmuls y = x Wᵀ of a model by name, with the widths of x and y.

        The names contain the checkpoint's layer names, with dots or underscores.
        """
        ...

    def compile_adapted(
        self,
        model: AnyModel,
        device_name: str,
        config: Mapping[str, Any],
        adapters: Mapping[str, LowRank],
        mode: str,
        /,
    ) -> CompiledModel:
        """Compile a model as ``Core.compile_model`` does, with adapters.

        Args:
            model: see ``Core.compile_model``.
            device_name: see ``Core.compile_model``.
            config: see ``Core.compile_model``.
            adapters: low-rank terms to add, by the matmul names of ``adaptable_matmuls``.
            mode: DYNAMIC or STATIC_RANK: requests have states (``AdapterVariable``)
                ``lora_state_<n><product>.A``, ``.alpha`` and ``.B`` for each matmul, of any rank or
                of at most the given ranks; ``reset_state`` keeps their values. STATIC or FUSE: the
                terms are part of the model, as separate matmuls or added to its weights.

        Raises:
            RuntimeError: the model cannot be compiled; the message is for the user.
        """
        ...


class Conversation(Protocol):
    """Conversation that shares a device with others."""

    def submit(self, ids: Sequence[int], /) -> Future[Array]:
        """Submit the next tokens; steps of the batching read them.

        Returns:
            Future of the last token's logits, f32 [vocabulary]. It raises RuntimeError if the
            tokens cannot be read, which affects no other conversation.

        Raises:
            RuntimeError: there are no tokens, the last ones are not read yet, or the conversation
                was closed.
        """
        ...

    def close(self) -> None:
        """End the conversation; its place is free before the next step."""
        ...


class Batching(Protocol):
    """Conversations that are run side by side on one device."""

    def open(self) -> Conversation:
        """Begin a conversation; with its first tokens it takes a place, or waits for one."""
        ...

    def step(self) -> object:
        """Read tokens of all conversations that submitted some: one token, or a part of more."""
        ...


@runtime_checkable
class SupportsBatching(Protocol):
    """Optional ability of a compiled model: conversations in one inference."""

    def create_batching(self, places: int, /) -> Batching:
        """Create a batching.

        Args:
            places: maximum number of conversations at a time.
        """
        ...


@runtime_checkable
class AdapterVariable(Protocol):
    """Variable that holds one tensor of an adapter."""

    @property
    def state(self) -> Tensor:
        """Value, which may be empty."""
        ...

    @state.setter
    def state(self, value: Any, /) -> None:
        """Set the value for the next inferences: a numpy array f32 or f16; empty adds nothing.

        Raises:
            RuntimeError: the value does not fit, or its rank is too large.
        """
        ...


def last_logits(request: InferRequest) -> npt.NDArray[np.float32]:
    """Return a copy of the last token's logits, f32 [vocabulary]."""
    return np.array(request.get_tensor("logits").data[0, -1], dtype=np.float32)
