"""The smallest complete runtime: a toy language model in numpy, with a growing state.

The next token depends on the last one through a table, and slightly on all earlier ones, so a
pipeline that loses or repeats a token changes the result. A full cache follows NPUW_LLM_ON_FULL,
without attention sinks. genai's own tests use the runtime, and it runs the pipeline without a model
or a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from genai_layer.npu import OnFull
from genai_layer.runtime import Array

Table = npt.NDArray[np.float32]

_HISTORY_WEIGHT = 1e-3


def chain(tokens: Sequence[int], vocabulary: int) -> Table:
    """Return a table that generates these tokens in order, f32 [vocabulary, vocabulary]."""
    table = np.zeros((vocabulary, vocabulary), np.float32)
    for current, following in pairwise(tokens):
        table[current, following] = 10.0
    return table


@dataclass(frozen=True, slots=True)
class MemoryTensor:
    """Tensor; satisfies ``runtime.Tensor``."""

    data: Array


class MemoryState:
    """Stored tokens; satisfies ``runtime.VariableState``."""

    name = "history"

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.forgotten = 0
        """Number of tokens before the stored ones, which were forgotten."""

    def append(self, tokens: Sequence[int], capacity: int) -> None:
        """Store further tokens; beyond the capacity the oldest ones are forgotten."""
        self.tokens.extend(tokens)
        surplus = max(len(self.tokens) - capacity, 0)
        del self.tokens[:surplus]
        self.forgotten += surplus

    def reset(self) -> None:
        """Forget all tokens."""
        self.tokens = []
        self.forgotten = 0


class MemoryRequest:
    """Conversation with the toy; satisfies ``runtime.InferRequest``.

    Args:
        table: logits by the last token.
        capacity: maximum number of stored tokens.
        on_full: behaviour beyond the capacity.
    """

    def __init__(self, table: Table, capacity: int, on_full: OnFull = OnFull.ERROR) -> None:
        self._table = table
        self._capacity = capacity
        self._on_full = on_full
        self._state = MemoryState()
        self._tensors: dict[str, MemoryTensor] = {}
        self._begun: Mapping[str, Array] | None = None

    def infer(self, inputs: Mapping[str, Array], /) -> object:
        """Run on new tokens."""
        self._check(inputs)
        self._state.append(inputs["input_ids"][0].tolist(), self._capacity)
        history = np.bincount(self._state.tokens, minlength=len(self._table))
        logits = self._table[self._state.tokens[-1]] + _HISTORY_WEIGHT * history
        self._tensors = {name: MemoryTensor(value) for name, value in inputs.items()}
        self._tensors["logits"] = MemoryTensor(logits.astype(np.float32)[None, None])
        return None

    def start_async(self, inputs: Mapping[str, Array], /) -> None:
        """Store the inputs; ``wait`` runs the inference."""
        self._begun = inputs

    def wait(self) -> None:
        """Run the inference of ``start_async``."""
        begun, self._begun = self._begun, None
        if begun is not None:
            self.infer(begun)

    def get_tensor(self, name: str, /) -> MemoryTensor:
        """Return a tensor of the last inference."""
        if name not in self._tensors:
            raise RuntimeError(f"no tensor {name!r}")
        return self._tensors[name]

    def query_state(self) -> Sequence[MemoryState]:
        """Return the only variable."""
        return [self._state]

    def reset_state(self) -> None:
        """Begin a new conversation."""
        self._state.reset()

    def _check(self, inputs: Mapping[str, Array]) -> None:
        stored = len(self._state.tokens)
        for name in ("input_ids", "attention_mask", "position_ids"):
            if name not in inputs:
                raise RuntimeError(f"input {name} is missing")
            if inputs[name].dtype != np.int64 or inputs[name].ndim != 2:
                raise RuntimeError(f"{name} is not i64 [1, n]")
        new = inputs["input_ids"].shape[1]
        said = stored + self._state.forgotten + new
        if inputs["attention_mask"].shape[1] != said:
            raise RuntimeError(f"attention_mask must have {said} positions")
        if inputs["position_ids"][0, -1] != said - 1:
            raise RuntimeError(f"position_ids must end with {said - 1}")
        kept = {OnFull.ERROR: stored + new, OnFull.SLIDE: new, OnFull.TRUNCATE: 0}[self._on_full]
        if kept > self._capacity:
            raise RuntimeError(f"{kept} tokens exceed the capacity of {self._capacity}")


class MemoryCompiledModel:
    """Compiled toy; satisfies ``runtime.CompiledModel``."""

    def __init__(
        self, table: Table, capacity: int, properties: Mapping[str, Any] | None = None
    ) -> None:
        self._table = table
        self._capacity = capacity
        self._properties = dict(properties or {})

    def create_infer_request(self) -> MemoryRequest:
        """Create an independent request."""
        on_full = OnFull(self._properties.get("NPUW_LLM_ON_FULL", OnFull.ERROR))
        return MemoryRequest(self._table, self._capacity, on_full)

    def get_property(self, name: str, /) -> Any:
        """Return an option that the model was compiled with.

        Raises:
            RuntimeError: the model has no such option.
        """
        if name not in self._properties:
            raise RuntimeError(f"unknown option {name!r}")
        return self._properties[name]


class MemoryCore:
    """Runtime whose every model is the toy; satisfies ``runtime.Core``.

    Args:
        table: logits f32 [vocabulary, vocabulary] by the last token, e.g. from ``chain``.
        capacity: maximum number of tokens in a conversation.
    """

    def __init__(self, table: Table, capacity: int = 1 << 16) -> None:
        self._table = table
        self._capacity = capacity
        self.config: dict[str, Any] = {}
        """Options that the pipeline passed, for tests to read."""
        self.blob: dict[str, Any] = {}
        """Options of the model's blob, for tests to set."""

    def compile_model(
        self, model: str | Path, device_name: str, config: Mapping[str, Any], /
    ) -> MemoryCompiledModel:
        """Return the toy; store the options."""
        del model, device_name
        self.config = dict(config)
        return MemoryCompiledModel(self._table, self._capacity, self.blob | self.config)
