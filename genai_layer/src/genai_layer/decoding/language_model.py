"""Language model of a generation: tokens in, logits out.

Source: inputs of stateful models, docs/reference/genai.md#several-sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from genai_layer.decoding.nan_logits import reject_nan
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import runtime_failures
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.runtime import Array, CompiledModel, InferRequest

Rows = Sequence[Sequence[int]]
"""Ids of the new tokens: as many in each row."""

MakeInputs = Callable[[npt.NDArray[np.int64], int], Mapping[str, Array]]
"""Returns the inputs, except beam_idx, for ids i64 [rows, n] after a number of stored tokens."""


def token_inputs(ids: npt.NDArray[np.int64], past: int) -> Mapping[str, Array]:
    """Return the inputs of a model of token ids."""
    rows, count = ids.shape
    positions = np.arange(past, past + count, dtype=np.int64)
    return {
        "input_ids": ids,
        "attention_mask": np.ones((rows, past + count), np.int64),
        "position_ids": np.tile(positions, (rows, 1)),
    }


class LanguageModel:
    """Request that reads the tokens of a generation, and the times that it takes.

    Args:
        request: the request to run.
        raw: collects the measurements.
        inputs: makes the model's inputs.
        compiled: the model of the request, for messages; None if it is unknown.
    """

    def __init__(
        self,
        request: InferRequest,
        raw: RawPerfMetrics,
        inputs: MakeInputs = token_inputs,
        compiled: CompiledModel | None = None,
    ) -> None:
        self._request = request
        self._raw = raw
        self._inputs = inputs
        self._compiled = compiled
        self._inferred = 0.0
        self._begun = Stopwatch(), 0
        """Start of the inference in progress, and the number of tokens after it."""

    def reset(self) -> None:
        """Forget all tokens.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        with runtime_failures():
            self._request.reset_state()

    def read(
        self,
        rows: Rows,
        past: int,
        sources: Sequence[int] = (0,),
        *,
        last: int = 1,
        meanwhile: Callable[[], None] | None = None,
    ) -> npt.NDArray[np.float32]:
        """Read new tokens.

        Args:
            rows: ids of the new tokens.
            past: number of tokens before them.
            sources: for each row, the row of the last inference that it continues.
            last: number of last tokens whose logits are returned.
            meanwhile: work to do while the device runs.

        Returns:
            Logits of the last tokens of each row, f32 [rows, last, vocabulary]; a copy.

        Raises:
            RuntimeFailure: the runtime failed, or logits are NaN.
        """
        watch = Stopwatch()
        inputs = self._prepared(rows, past, sources)
        with runtime_failures():
            if meanwhile is None:
                self._request.infer(inputs)
            else:
                self._request.start_async(inputs)
                try:
                    meanwhile()
                finally:
                    self._request.wait()
            logits = self._logits(last)
        self._check(logits, watch, past + len(rows[0]))
        return logits

    def start(self, rows: Rows, past: int, sources: Sequence[int] = (0,)) -> None:
        """Begin to read new tokens; ``wait`` has to follow. See ``read``.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        self._begun = Stopwatch(), past + len(rows[0])
        with runtime_failures():
            self._request.start_async(self._prepared(rows, past, sources))

    def wait(self, last: int = 1) -> npt.NDArray[np.float32]:
        """Return the logits of the last tokens of each row begun by ``start``; see ``read``.

        Raises:
            RuntimeFailure: the runtime failed, or logits are NaN.
        """
        with runtime_failures():
            self._request.wait()
            logits = self._logits(last)
        self._check(logits, *self._begun)
        return logits

    def _prepared(self, rows: Rows, past: int, sources: Sequence[int]) -> dict[str, Array]:
        ids = np.array(rows, np.int64)
        return {**self._inputs(ids, past), "beam_idx": np.array(sources, np.int32)}

    def _logits(self, last: int) -> npt.NDArray[np.float32]:
        return np.array(self._request.get_tensor("logits").data[:, -last:], np.float32)

    def _check(self, logits: npt.NDArray[np.float32], watch: Stopwatch, tokens: int) -> None:
        """Check the logits after a number of tokens, and note how long they took."""
        reject_nan(logits, tokens, self._compiled)
        took = watch.microseconds()
        self._inferred += took
        self._raw.token_infer_durations.append(took)

    def finish(self) -> None:
        """Note the duration of all inferences."""
        self._raw.inference_durations.append(self._inferred)
