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
from genai_layer.runtime import CONTINUES, Array
from genai_layer.tensor import HasData

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
    """Stored tokens of all rows; satisfies ``runtime.VariableState``."""

    name = "history"

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        """Stored tokens of each row, equally many; no rows before the first inference."""
        self.forgotten = 0
        """Number of tokens before the stored ones, which were forgotten."""

    @property
    def stored(self) -> int:
        """Number of tokens stored for each row."""
        return len(self.rows[0]) if self.rows else 0

    def append(self, tokens: Array, sources: Array, capacity: int) -> None:
        """Store further tokens; beyond the capacity the oldest ones are forgotten.

        Args:
            tokens: new tokens of each row, i64 [B, n].
            sources: the stored row that each new row continues, i32 [B].
            capacity: maximum number of stored tokens of a row.
        """
        rows = self.rows or [list[int]() for _ in tokens]
        whole = [
            [*rows[int(source)], *map(int, new)]
            for source, new in zip(sources, tokens, strict=True)
        ]
        surplus = max(len(whole[0]) - capacity, 0)
        self.rows = [row[surplus:] for row in whole]
        self.forgotten += surplus

    def copy_from(self, other: MemoryState) -> None:
        """Store a copy of another state's tokens."""
        self.rows, self.forgotten = [[*row] for row in other.rows], other.forgotten

    def keep(self, tokens: int) -> None:
        """Forget all but the first tokens of each row."""
        self.rows = [row[: tokens - self.forgotten] for row in self.rows]

    def reset(self) -> None:
        """Forget all tokens."""
        self.rows = []
        self.forgotten = 0


class MemoryRequest:
    """Rows of conversations with the toy; satisfies ``runtime.InferRequest``.

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
        new = inputs["input_ids"].shape[1]
        self._state.keep(inputs["attention_mask"].shape[1] - new)
        self._state.append(inputs["input_ids"], inputs["beam_idx"], self._capacity)
        logits = np.array([self._last_logits(row, new) for row in self._state.rows], np.float32)
        self._tensors = {name: MemoryTensor(value) for name, value in inputs.items()}
        self._tensors["logits"] = MemoryTensor(logits)
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

    def copy_from(self, other: MemoryRequest) -> None:
        """Continue a copy of another request's conversation."""
        self._state.copy_from(other._state)

    def _last_logits(self, tokens: Sequence[int], count: int) -> list[Array]:
        """Return the logits after each of the last tokens of a row, as far as they are stored."""
        begin = max(len(tokens) - count, 0)
        return [self._logits(tokens[: end + 1]) for end in range(begin, len(tokens))]

    def _logits(self, tokens: Sequence[int]) -> Array:
        """Return the logits after the stored tokens of a row, f64 [vocabulary]."""
        history = np.bincount(tokens, minlength=len(self._table))
        return self._table[tokens[-1]] + _HISTORY_WEIGHT * history

    def _check(self, inputs: Mapping[str, Array]) -> None:
        for name in ("input_ids", "attention_mask", "position_ids"):
            if name not in inputs:
                raise RuntimeError(f"input {name} is missing")
            if inputs[name].dtype != np.int64 or inputs[name].ndim != 2:
                raise RuntimeError(f"{name} is not i64 [B, n]")
        rows, new = inputs["input_ids"].shape
        mask, state = inputs["attention_mask"], self._state
        kept = mask.shape[1] - new
        if len(mask) != rows or not state.forgotten <= kept <= state.forgotten + state.stored:
            raise RuntimeError(
                f"attention_mask must have {state.forgotten + new} to "
                f"{state.forgotten + state.stored + new} positions for each of {rows} rows"
            )
        if (inputs["position_ids"][:, -1] != kept + new - 1).any():
            raise RuntimeError(f"position_ids must end with {kept + new - 1}")
        sources, before = inputs.get("beam_idx"), len(self._state.rows) or rows
        if sources is None or sources.dtype != np.int32 or sources.shape != (rows,):
            raise RuntimeError(f"beam_idx is not i32 [{rows}]")
        if not ((sources >= 0) & (sources < before)).all():
            raise RuntimeError(f"beam_idx is {sources.tolist()}, but there are {before} rows")
        total = kept - state.forgotten + new
        if total > self._capacity and self._on_full is OnFull.ERROR:
            raise RuntimeError(f"{total} tokens exceed the capacity of {self._capacity}")


class MemoryCompiledModel:
    """Compiled toy; satisfies ``runtime.CompiledModel``."""

    def __init__(
        self, table: Table, capacity: int, properties: Mapping[str, Any] | None = None
    ) -> None:
        self._table = table
        self._capacity = capacity
        self._properties = {CONTINUES: True, **(properties or {})}

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

    def read_model(self, model: str, weights: HasData, /) -> str:
        """Return the text: every model is the toy."""
        del weights
        return model

    def compile_model(
        self, model: str | Path, device_name: str, config: Mapping[str, Any], /
    ) -> MemoryCompiledModel:
        """Return the toy; store the options."""
        del model, device_name
        self.config = dict(config)
        return MemoryCompiledModel(self._table, self._capacity, self.blob | self.config)
