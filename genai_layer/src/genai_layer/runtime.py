"""The seam below genai: what a runtime must offer to run a language model.

The shapes and names are OpenVINO's, so the real ``openvino`` package satisfies these protocols as
it is, and so does npuw_layer. Nothing here knows devices, KV layouts or blobs.

A *stateful* language model has the inputs ``input_ids`` i64 [1, n], ``attention_mask`` i64
[1, past + n], ``position_ids`` i64 [1, n] and ``beam_idx`` i32 [1], and the output ``logits`` f32
[1, rows, vocabulary] where ``rows`` is n or 1: the last row always belongs to the last token. What
it remembers between calls is its state, cleared by ``reset_state``.

Source: openvino.Core, CompiledModel, InferRequest, VariableState (OpenVINO Python API 2026).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Tensor(Protocol):
    """A tensor of a request; ``data`` is a view that the next inference may overwrite."""

    @property
    def data(self) -> Array:
        """The values as a numpy array of the tensor's shape and type."""
        ...


class VariableState(Protocol):
    """One variable (a K or V cache) of a stateful model."""

    @property
    def name(self) -> str:
        """The variable's id, as in the model's ReadValue and Assign."""
        ...

    def reset(self) -> None:
        """Forget the value: the next inference starts from the initial state."""
        ...


class InferRequest(Protocol):
    """One conversation with a compiled model: its tensors and its state.

    Two requests of one compiled model share nothing that an inference changes.
    """

    def infer(self, inputs: Mapping[str, Array], /) -> object:
        """Run once, synchronously.

        Mask and positions count all that was said, also what a full cache made the request forget
        (NPUW_LLM_ON_FULL).

        Raises:
            RuntimeError: the inputs do not fit the model or its capacity, or the device failed;
                the message is for the user. The request stays usable after ``reset_state``.
        """
        ...

    def start_async(self, inputs: Mapping[str, Array], /) -> None:
        """Begin one inference; the caller does not touch the inputs before ``wait`` returns."""
        ...

    def wait(self) -> None:
        """Block until the inference begun by ``start_async`` has ended; raise as ``infer`` does."""
        ...

    def get_tensor(self, name: str, /) -> Tensor:
        """Give an input or output by name."""
        ...

    def query_state(self) -> Sequence[VariableState]:
        """List the variables."""
        ...

    def reset_state(self) -> None:
        """Forget everything: a new conversation begins."""
        ...


class CompiledModel(Protocol):
    """A model ready to run on one device."""

    def create_infer_request(self) -> InferRequest:
        """Make an independent request."""
        ...

    def get_property(self, name: str, /) -> Any:
        """Give an option that the model has, by OpenVINO's name.

        Raises:
            RuntimeError: there is no such option.
        """
        ...


class Core(Protocol):
    """Compiles models for devices."""

    def compile_model(
        self, model: str | Path, device_name: str, config: Mapping[str, Any], /
    ) -> CompiledModel:
        """Compile a model for a device.

        Args:
            model: an ``openvino_model.xml``; or, where the runtime reads it, a Hugging Face folder.
            device_name: "NPU", "CPU" …
            config: options under OpenVINO's names.

        Raises:
            RuntimeError: with a message for the user.
        """
        ...


class Port(Protocol):
    """An input or output of a compiled model."""

    def get_names(self) -> set[str]:
        """Its names."""
        ...


@runtime_checkable
class ShowsInputs(Protocol):
    """What a compiled model that reads texts is, too: it says which inputs it takes."""

    @property
    def inputs(self) -> Sequence[Port]:
        """Its inputs, without variables."""
        ...


@runtime_checkable
class ReportsExecution(Protocol):
    """An optional ability of a request: to say in a few words how it ran.

    The keys and values are shown to people as they are, e.g. ``{"KV variant": "256 of 1152"}``.
    """

    def execution_report(self) -> Mapping[str, str]:
        """Facts on the last generation, in the order to show them."""
        ...


@dataclass(frozen=True, slots=True)
class LowRank:
    """What adapters add to a product y = x Wᵀ: ((x Aᵀ) · alpha) Bᵀ."""

    a: Array
    """A [rank, in], f32 or f16."""
    alpha: Array
    """Alpha f32 [1, rank]."""
    b: Array
    """B [out, rank], of A's type."""


@runtime_checkable
class TakesAdapters(Protocol):
    """An optional ability of a core: to compile models with LoRA adapters."""

    def adaptable_products(self, model: str | Path, /) -> Mapping[str, tuple[int, int]]:
        """Tell the products y = x Wᵀ of a model by name, with the widths of x and of y.

        Names have those in them that a checkpoint has for layers, with dots or underscores.
        """
        ...

    def compile_adapted(
        self,
        model: str | Path,
        device_name: str,
        config: Mapping[str, Any],
        adapters: Mapping[str, LowRank],
        mode: str,
        /,
    ) -> CompiledModel:
        """Compile a model as ``Core.compile_model`` does, with adapters.

        Args:
            model: as for ``Core.compile_model``.
            device_name: likewise.
            config: likewise.
            adapters: what is added to products, by the names of ``adaptable_products``.
            mode: DYNAMIC or STATIC_RANK: requests have states (``HoldsAdapter``)
                ``lora_state_<n><product>.A``, ``.alpha`` and ``.B`` for each of the products, of
                any rank or of at most those given; ``reset_state`` leaves them as they are.
                STATIC or FUSE: they are part of the model, beside its weights or added to them.

        Raises:
            RuntimeError: with a message for the user.
        """
        ...


@runtime_checkable
class HoldsAdapter(Protocol):
    """A variable that one of an adapter's tensors is set to."""

    @property
    def state(self) -> Tensor:
        """Its values, which may be empty."""
        ...

    @state.setter
    def state(self, value: Any, /) -> None:
        """Set it for the next inferences, to a numpy array f32 or f16; an empty one adds nothing.

        Raises:
            RuntimeError: it does not fit, or its rank is too large.
        """
        ...


def last_logits(request: InferRequest) -> npt.NDArray[np.float32]:
    """Give the logits of the last token, f32 [vocabulary], as a copy."""
    return np.array(request.get_tensor("logits").data[0, -1], dtype=np.float32)
