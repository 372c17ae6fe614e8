"""Optional abilities of a runtime, each found by ``isinstance``.

Source: openvino.CompiledModel and Model (OpenVINO Python API 2026); adapters, batching and
progress are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from genai_layer.runtime import AnyModel, Array, CompiledModel, Tensor, VariableState


class Port(Protocol):
    """Input or output of a compiled model."""

    def get_names(self) -> set[str]:
        """Return the names of the port."""
        ...


@runtime_checkable
class ListsPorts(Protocol):
    """Compiled model that lists its inputs and outputs, as models of texts must."""

    @property
    def inputs(self) -> Sequence[Port]:
        """Input ports, without variables."""
        ...

    @property
    def outputs(self) -> Sequence[Port]:
        """Output ports, without variables."""
        ...


@runtime_checkable
class ReportsExecution(Protocol):
    """Optional ability of a request: a short report on the last generation.

    Keys and values are displayed unchanged, e.g. ``{"KV variant": "256 of 1152"}``.
    """

    def execution_report(self) -> Mapping[str, str]:
        """Return facts on the last generation, in display order."""
        ...


ProgressListener = Callable[[str, int, int, str], object]
"""Receiver of an activity, e.g. "compiling"; the units that are done; their total; and the unit's
name, where B is bytes. An activity ends when all its units are done; it may begin again."""


@runtime_checkable
class ReportsProgress(Protocol):
    """Optional ability of a core: the progress of reading and compiling a model."""

    def reporting_progress(self, listener: ProgressListener, /) -> AbstractContextManager[None]:
        """Return a context in which compilations of the caller's thread report to a listener."""
        ...


@runtime_checkable
class ListsProperties(Protocol):
    """Ability of a core that knows its properties: names for the completion of commands."""

    def get_property(self, device_name: str, name: str, /) -> Any:
        """Return a property of a device.

        SUPPORTED_PROPERTIES is a dictionary from names to "RO" or "RW".
        """
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

    def submit(self, ids: Sequence[int], keep: int | None = None, /) -> Future[Array]:
        """Submit the next tokens; steps of the batching read them.

        Args:
            ids: the tokens.
            keep: number of stored tokens that they follow, all if None; later ones are forgotten.

        Returns:
            Future of the last token's logits, f32 [vocabulary]. It raises RuntimeError if the
            tokens cannot be read, which affects no other conversation.

        Raises:
            RuntimeError: there are no tokens, the last ones are not read yet, or the conversation
                was closed.
        """
        ...

    def rest(self) -> None:
        """Keep the tokens, although none follow for now; the conversation is shown as ended."""
        ...

    def copy_from(self, other: Any, /) -> None:
        """Continue a copy of the tokens that another conversation has read.

        A copy takes a place at once, if necessary one beyond the limit of the batching. This must
        not be called within a step.

        Args:
            other: a conversation of the same batching. Its tokens that are submitted, but not read
                yet, are not copied.

        Raises:
            RuntimeError: there is no memory for the copy, the other one has read nothing, or the
                tokens of one of both are being read.
        """
        ...

    def close(self) -> None:
        """End the conversation; its place is free before the next step."""
        ...


@runtime_checkable
class ReportsCachedTokens(Protocol):
    """Optional ability of a conversation: the use of a prefix cache."""

    @property
    def cached_tokens(self) -> int:
        """Tokens of the last prompt that the prefix cache had."""
        ...


class Batching(Protocol):
    """Conversations that are run side by side on one device."""

    def open(self, adapter: Mapping[str, Array] = ..., /) -> Conversation:
        """Begin a conversation; with its first tokens it takes a place, or waits for one.

        Args:
            adapter: values of adapter states, by the names of a request's states; the others have
                no effect. Only models with such states accept any.
        """
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
class AdapterVariable(VariableState, Protocol):
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
