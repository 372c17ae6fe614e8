"""A request: what OpenVINO's ``InferRequest`` offers, for one conversation with an LLM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from typing import Any

import numpy as np

from npuw_layer.errors import TensorError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.conversation import Conversation
from npuw_layer.llm.names import BEAMS, IDS, LOGITS, MASK, POSITIONS
from npuw_layer.llm.submodel import NewTokens
from npuw_layer.llm.variable_state import VariableState
from npuw_layer.ports import Array
from npuw_layer.tensor import Tensor


class InferRequest:
    """One conversation; two requests of a compiled model share nothing that changes results.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        self._compiled = compiled
        self._conversation = Conversation(compiled)
        self._inputs: dict[str, Array] = {}
        self._logits: Array | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._running: Future[None] | None = None
        self._callback: Callable[[], object] | None = None

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
            InferCancelled: ``cancel`` was called meanwhile.
            DeviceError: the device failed.
        """
        self.wait()
        self._infer(inputs)
        assert self._logits is not None  # _infer sets it or raises
        return {LOGITS: self._logits}

    def start_async(self, inputs: Mapping[str, Array] | None = None, /) -> None:
        """Begin one inference on another thread; ``wait`` ends it."""
        self.wait()
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "npuw-request")
        self._running = self._worker.submit(self._infer_and_call, inputs)

    def wait(self) -> None:
        """Block until the inference begun by ``start_async`` has ended; raise what it raised."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def wait_for(self, timeout: int) -> bool:
        """Wait at most so many milliseconds; tell whether the inference has ended.

        Raises:
            NpuwError: what the inference raised.
        """
        if self._running is None:
            return True
        try:
            self._running.exception(timeout / 1000)
        except StillRunning:
            return False
        self.wait()
        return True

    def cancel(self) -> None:
        """Stop the inference that is running: it ends with InferCancelled before its next chunk.

        What it has stored so far stays; positions say how to go on, or ``reset_state``.
        """
        if self._running is not None and not self._running.done():
            self._conversation.cancelled.set()

    def set_callback(self, callback: Callable[[Any], object], userdata: Any = None) -> None:
        """Have something called after each inference of ``start_async``, failed ones included.

        Args:
            callback: gets ``userdata``; it runs on the request's thread, and what it raises is
                raised by ``wait``.
            userdata: anything.
        """
        self._callback = lambda: callback(userdata)

    def set_tensor(self, name: str, tensor: Tensor | Array, /) -> None:
        """Set an input for the next inferences.

        Raises:
            TensorError: there is no such input.
        """
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
        self.wait()
        return [VariableState(name, self._conversation) for name in self._conversation.cache.names]

    def reset_state(self) -> None:
        """Begin a new conversation."""
        self.wait()
        self._conversation.reset()

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
        return report

    def _infer_and_call(self, inputs: Mapping[str, Array] | None) -> None:
        try:
            self._infer(inputs)
        finally:
            if self._callback is not None:
                self._callback()

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
