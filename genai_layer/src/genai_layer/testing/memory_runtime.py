"""The smallest complete runtime: a toy language model in numpy, with a state that really grows.

The next token depends on the last one through a table, and a little on all before it, so that a
pipeline that forgets or repeats something is found out. When it is full it does what
NPUW_LLM_ON_FULL says, without sinks. Used by genai's own tests, and good for trying the pipeline
without any model or device.
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
    """Make a table that says these tokens one after the other, f32 [vocabulary, vocabulary]."""
    table = np.zeros((vocabulary, vocabulary), np.float32)
    for current, following in pairwise(tokens):
        table[current, following] = 10.0
    return table


@dataclass(frozen=True, slots=True)
class MemoryTensor:
    """A tensor; satisfies ``runtime.Tensor``."""

    data: Array


class MemoryState:
    """The tokens seen so far; satisfies ``runtime.VariableState``."""

    name = "history"

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.forgotten = 0
        """How many were seen before these, and had to go."""

    def append(self, tokens: Sequence[int], capacity: int) -> None:
        """See more; the oldest go where they are more than there is room for."""
        self.tokens.extend(tokens)
        surplus = max(len(self.tokens) - capacity, 0)
        del self.tokens[:surplus]
        self.forgotten += surplus

    def reset(self) -> None:
        """Forget them."""
        self.tokens = []
        self.forgotten = 0


class MemoryRequest:
    """A conversation with the toy; satisfies ``runtime.InferRequest``.

    Args:
        table: logits by the last token.
        capacity: the most tokens that it can store.
        on_full: what becomes of more.
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
        """Begin an inference; it is done in ``wait``."""
        self._begun = inputs

    def wait(self) -> None:
        """Do what ``start_async`` began."""
        begun, self._begun = self._begun, None
        if begun is not None:
            self.infer(begun)

    def get_tensor(self, name: str, /) -> MemoryTensor:
        """Give a tensor of the last inference."""
        if name not in self._tensors:
            raise RuntimeError(f"no tensor {name!r}")
        return self._tensors[name]

    def query_state(self) -> Sequence[MemoryState]:
        """The one variable."""
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
    """Satisfies ``runtime.CompiledModel``."""

    def __init__(
        self, table: Table, capacity: int, properties: Mapping[str, Any] | None = None
    ) -> None:
        self._table = table
        self._capacity = capacity
        self._properties = dict(properties or {})

    def create_infer_request(self) -> MemoryRequest:
        """Make an independent request."""
        on_full = OnFull(self._properties.get("NPUW_LLM_ON_FULL", OnFull.ERROR))
        return MemoryRequest(self._table, self._capacity, on_full)

    def get_property(self, name: str, /) -> Any:
        """Give what it was compiled with.

        Raises:
            RuntimeError: there is no such option.
        """
        if name not in self._properties:
            raise RuntimeError(f"unknown option {name!r}")
        return self._properties[name]


class MemoryCore:
    """Satisfies ``runtime.Core``; every model is the toy.

    Args:
        table: logits f32 [vocabulary, vocabulary] by the last token, e.g. from ``chain``.
        capacity: the most tokens that a conversation can have.
    """

    def __init__(self, table: Table, capacity: int = 1 << 16) -> None:
        self._table = table
        self._capacity = capacity
        self.config: dict[str, Any] = {}
        """What the pipeline passed, for tests to look at."""
        self.blob: dict[str, Any] = {}
        """What the model's blob says, for tests to set."""

    def compile_model(
        self, model: str | Path, device_name: str, config: Mapping[str, Any], /
    ) -> MemoryCompiledModel:
        """Take note of the configuration."""
        del model, device_name
        self.config = dict(config)
        return MemoryCompiledModel(self._table, self._capacity, self.blob | self.config)
