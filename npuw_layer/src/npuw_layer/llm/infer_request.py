"""A request: what OpenVINO's ``InferRequest`` offers, for one conversation with an LLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npuw_layer.async_run import AsyncRequest
from npuw_layer.devices.placed import ReportsPlacement
from npuw_layer.errors import TensorError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.conversation import Conversation
from npuw_layer.llm.names import BEAMS, IDS, LOGITS, MASK, POSITIONS
from npuw_layer.llm.state_file import load_state, save_state
from npuw_layer.llm.submodel import NewTokens
from npuw_layer.llm.variable_state import VariableState
from npuw_layer.offload.ports import ReportsOffload
from npuw_layer.ports import Array
from npuw_layer.tensor import Tensor


@dataclass(frozen=True, slots=True)
class RequestMemory:
    """Bytes of device memory."""

    kv_cache: int
    weights: int


class InferRequest(AsyncRequest):
    """One conversation; two requests of a compiled model share nothing that changes results.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        super().__init__()
        self._compiled = compiled
        self._conversation = Conversation(compiled, self._run.check_wanted)
        self._inputs: dict[str, Array] = {}
        self._logits: Array | None = None

    def infer(self, inputs: Mapping[str, Array] | None = None, /) -> dict[str, Array]:
        """Run on new tokens.

        Args:
            inputs: input_ids i64 [1, n]; attention_mask i64 [1, stored + n]; position_ids i64
                [1, n], continuing what is stored, or earlier to forget what follows; beam_idx is
                ignored. What is missing is taken from ``set_tensor``.

        Returns:
            logits f32 [1, 1, V] of the last token; after a generate step that takes several,
            [1, n, V].

        Raises:
            TensorError: an input is missing or does not fit.
            PromptTooLong, CapacityError: the conversation is too long.
            RequestBusy: the request is running.
            InferenceCancelled: ``cancel`` was called meanwhile.
            DeviceError: the device failed.
        """
        self._run.run(lambda: self._infer(inputs))
        assert self._logits is not None  # _infer sets it or raises
        return {LOGITS: self._logits}

    def start_async(
        self, inputs: Mapping[str, Array] | None = None, /, userdata: Any = None
    ) -> None:
        """Begin one inference on the request's own thread; ``wait`` ends it.

        Args:
            inputs: as for ``infer``.
            userdata: for the callback, in place of what ``set_callback`` was given.

        Raises:
            RequestBusy: the request is running; the rest is raised by ``wait``.
        """
        self._start(lambda: self._infer(inputs), userdata)

    def cancel(self) -> None:
        """Give up the running inference before its next chunk or token.

        ``wait``, or ``infer``, then raises InferenceCancelled. What was stored so far stays:
        positions say how to go on, or ``reset_state``.
        """
        self._run.cancel()

    def set_tensor(self, name: str, tensor: Tensor | Array, /) -> None:
        """Set an input for the next inferences.

        Raises:
            TensorError: there is no such input.
        """
        self._run.check_idle()
        if name not in (IDS, MASK, POSITIONS, BEAMS):
            raise TensorError(f"no input {name!r}; there are {IDS}, {MASK} and {POSITIONS}")
        self._inputs[name] = tensor.data if isinstance(tensor, Tensor) else tensor

    def get_tensor(self, name: str, /) -> Tensor:
        """Give an input that was set, or the logits of the last inference.

        Raises:
            TensorError: there is none of that name.
        """
        if name == LOGITS and self._logits is not None:
            return Tensor(self._logits)
        if name in self._inputs:
            return Tensor(self._inputs[name])
        raise TensorError(f"no tensor {name!r} yet")

    def query_state(self) -> Sequence[VariableState]:
        """The variables: each layer's K and V."""
        self._run.check_idle()
        return [VariableState(name, self._conversation) for name in self._conversation.cache.names]

    def save_state(self, path: str | Path, /) -> None:
        """Keep the conversation in a file; ``load_state`` of a request goes on with it.

        Raises:
            RequestBusy: the request is running.
            NpuwFault: the file cannot be written.
        """
        self._run.check_idle()
        save_state(self._conversation, Path(path))

    def load_state(self, path: str | Path, /) -> None:
        """Go on with a conversation of a file, by a request of the same model.

        Raises:
            RequestBusy: the request is running.
            StateError: the file is damaged, of another model, or too long; nothing has changed.
            NpuwFault: it cannot be read.
        """
        self._run.check_idle()
        load_state(self._conversation, Path(path))

    def reset_state(self) -> None:
        """Begin a new conversation.

        Raises:
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        self._conversation.reset()

    def memory(self) -> RequestMemory:
        """Device memory of the conversation's caches, and of the weights that all share."""
        return RequestMemory(self._conversation.cache.nbytes, self._compiled.bank.nbytes)

    def execution_report(self) -> Mapping[str, str]:
        """How the last inferences ran, for people."""
        talk, plan = self._conversation, self._compiled.plan
        ladder = "/".join(map(str, plan.capacities))
        report = {
            "blobs": str(self._compiled.origin),
            "prefill": " + ".join(talk.counts.prefills) or "none",
            "KV variant": f"{plan.capacities[talk.variant]} of {ladder}",
            "KV copied": f"{talk.cache.copied_bytes} bytes",
        }
        if self._compiled.prefixes is not None:
            report["prefix cache"] = f"{talk.counts.cached_tokens} tokens"
        if isinstance(self._compiled.device, ReportsOffload):
            report |= self._compiled.device.offload_report().described()
        for stage, model in self._compiled.models.items():
            if isinstance(model, ReportsPlacement):
                report[f"device of {stage.name}"] = str(model.placement)
        return report

    def _infer(self, inputs: Mapping[str, Array] | None) -> None:
        tokens = self._take(dict(self._inputs) | dict(inputs or {}))
        self._logits = self._conversation.run(tokens).copy()

    def _take(self, inputs: Mapping[str, Array]) -> NewTokens:
        """Check the inputs by themselves."""
        if POSITIONS not in inputs and not self._conversation.takes_positions:
            inputs = {**inputs, **_continued(inputs)}
        missing = [name for name in (IDS, MASK, POSITIONS) if name not in inputs]
        if missing:
            raise TensorError(f"inputs are missing: {', '.join(missing)}")
        ids, mask, positions = (_row(name, inputs[name]) for name in (IDS, MASK, POSITIONS))
        if not len(ids) or len(positions) != len(ids):
            raise TensorError(f"{len(ids)} input_ids with {len(positions)} position_ids")
        return NewTokens(ids, mask, positions)


def _continued(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Positions of the new tokens at the end of the mask, for models that do not want them."""
    if IDS not in inputs or MASK not in inputs:
        return {}
    total, new = inputs[MASK].shape[-1], inputs[IDS].shape[-1]
    return {POSITIONS: np.arange(total - new, total, dtype=np.int64)[None]}


def _row(name: str, array: Array) -> Array:
    if array.dtype != np.int64 or array.ndim != 2 or array.shape[0] != 1:
        raise TensorError(
            f"{name} is {array.dtype} {list(array.shape)}, not i64 [1, tokens]; batch is 1"
        )
    return array[0]
