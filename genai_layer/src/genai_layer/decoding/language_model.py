"""Language model of a generation: tokens in, logits out.

Source: inputs of stateful models, docs/reference/genai.md#several-sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from genai_layer.decoding.nan_logits import reject_nan
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.errors import runtime_failures
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.runtime import Array

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


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a model for the tokens of a prompt, and of texts after it."""

    make: MakeInputs = token_inputs
    visuals: Mapping[int, int] = field(default_factory=dict[int, int])
    """Identities of the prompt's tokens of images and videos, by place; negative."""

    def identities(self, ids: Sequence[int], past: int = 0) -> list[int]:
        """Return the identities of tokens after a number of others; see ``StoredTokens``."""
        if not self.visuals:
            return [*ids]
        return [self.visuals.get(place, token) for place, token in enumerate(ids, past)]


TOKENS = Inputs()
"""Inputs of a model of token ids."""


class LanguageModel:
    """Request that reads the tokens of a generation, and the times that it takes.

    A prompt, which has no tokens before it, continues after those of its tokens that are stored.

    Args:
        stored: the request to run, and its tokens.
        raw: collects the measurements.
        inputs: the model's inputs.
    """

    def __init__(self, stored: StoredTokens, raw: RawPerfMetrics, inputs: Inputs = TOKENS) -> None:
        self._stored = stored
        self._request = stored.request
        self._raw = raw
        self._inputs = inputs
        self.inferred = 0.0
        """Duration of all inferences so far, in microseconds."""
        self._begun = Stopwatch(), 0
        """Start of the inference in progress, and the number of tokens after it."""
        self._after: list[int] = []
        """Stored tokens after the inference in progress; see ``StoredTokens.take``."""
        self.shared: int | None = None
        """Stored tokens after which the first prompt continued; None before it."""

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
        read = self._inputs.identities(rows[0], past)
        if not past:
            past = self._begin(read)
            rows = [row[past:] for row in rows]
        made = self._inputs.make(np.array(rows, np.int64), past)
        self._after = self._stored.take(past, read[-len(rows[0]) :] if len(rows) == 1 else None)
        return {**made, "beam_idx": np.array(sources, np.int32)}

    def _begin(self, prompt: Sequence[int]) -> int:
        """Begin a prompt; return the number of its stored tokens."""
        with runtime_failures():
            shared = self._stored.begin(prompt)
        if self.shared is None:
            self.shared = shared
        return shared

    def _logits(self, last: int) -> npt.NDArray[np.float32]:
        return np.array(self._request.get_tensor("logits").data[:, -last:], np.float32)

    def _check(self, logits: npt.NDArray[np.float32], watch: Stopwatch, tokens: int) -> None:
        """Check the logits after a number of tokens; note the tokens, and how long they took."""
        reject_nan(logits, tokens, self._stored.compiled)
        self._stored.note(self._after)
        took = watch.microseconds()
        self.inferred += took
        self._raw.token_infer_durations.append(took)

    def finish(self) -> None:
        """Note the duration of all inferences."""
        self._raw.inference_durations.append(self.inferred)
