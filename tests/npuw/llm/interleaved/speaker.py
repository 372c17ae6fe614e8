"""A request under test, with its expected results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from interleaved.moments import Moments, lose_device
from interleaved.reference import Reference, Refused
from interleaved.stateful import Stateful
from npuw_layer.errors import DeviceError, InferenceCancelled, NpuwError
from npuw_layer.llm.request.infer_request import InferRequest
from npuw_layer.llm.request.variable_state import StoredTokensState, VariableState

Answer = Callable[[], np.ndarray]
"""Function that returns logits [1, n, V], or raises."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Comparison of logits with those of the stateful model."""

    stateful: Stateful
    error: float

    def compare(self, reference: Reference, found: Sequence[np.ndarray]) -> None:
        """Compare the logits of the last tokens, [V] each, with one unchunked run."""
        if not found:
            return
        expected = reference.logits(self.stateful)[0][-len(found) :]
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            close(one, other, self.error, f"logits of token {number - len(found)}")


def close(found: np.ndarray, expected: np.ndarray, error: float, what: str) -> None:
    """Check values and the index of the largest one."""
    allowed = error * np.abs(expected).max()
    off = np.abs(found.astype(np.float64) - expected).max()
    assert off <= allowed, f"{what}: off by {off}, {allowed} is allowed"
    first, second = np.sort(expected)[-1:-3:-1]
    assert first - second <= 2 * allowed or found.argmax() == expected.argmax(), what


class Speaker:
    """One conversation with a request.

    Args:
        request: the request under test.
        reference: reference state of the conversation.
        judge: comparison of logits.
    """

    def __init__(self, request: InferRequest, reference: Reference, judge: Judge) -> None:
        self.request = request
        self.reference = reference
        self._judge = judge
        self._given: list[tuple[np.ndarray, np.ndarray]] = []
        """All returned logits, and copies of them."""

    def inputs(self, ids: Sequence[int], keep: int, padding: int = 0) -> dict[str, np.ndarray]:
        """Return the request's inputs for tokens after the first ``keep``."""
        fresh = keep == 0 and len(ids) > 1
        new = np.arange(len(ids)) >= (padding if fresh else 0)
        begin = self.reference.first + keep
        return {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": np.concatenate([self.reference.mask()[:keep], new])[None].astype(
                np.int64
            ),
            "position_ids": np.arange(begin, begin + len(ids), dtype=np.int64)[None],
        }

    def say(self, ids: Sequence[int], keep: int, padding: int = 0) -> None:
        """Read tokens after the first ``keep``, and compare the logits."""
        inputs = self.inputs(ids, keep, padding)
        self.hear(ids, keep, padding, lambda: self.request.infer(inputs)["logits"])

    def waited(self) -> np.ndarray:
        """Wait for the started inference; return its logits."""
        self.request.wait()
        return self.request.get_tensor("logits").data

    def hear(self, ids: Sequence[int], keep: int, padding: int, answer: Answer) -> None:
        """Compare logits, or the expected error."""
        try:
            self.reference.say(ids, keep, padding)
        except Refused as refused:
            _raises(refused, answer)
            return
        self._judge.compare(self.reference, self._remember(answer()))

    def generate(self, ids: Sequence[int], greedy: bool) -> None:
        """Read tokens one by one, given or greedy; compare all logits together."""
        found: list[np.ndarray] = []
        for number, token in enumerate(ids):
            if self.reference.drops([token], self.reference.said):
                self._judge.compare(self.reference, found)
                found = []
            said = int(found[-1].argmax()) if greedy and number and found else token
            inputs = self.inputs([said], self.reference.said)
            try:
                self.reference.say([said], self.reference.said)
            except Refused as refused:
                _raises(refused, lambda given=inputs: self.request.infer(given))
                break
            found += self._remember(self.request.infer(inputs)["logits"])
        self._judge.compare(self.reference, found)

    def interrupt(
        self, ids: Sequence[int], keep: int, run: int, moments: Moments, cancelled: bool
    ) -> None:
        """Read tokens, and interrupt the given run, if it takes place."""
        happens = self.request.cancel if cancelled else lose_device
        inputs = self.inputs(ids, keep)
        with moments.at_run(run, happens):
            try:
                answer = self.request.infer(inputs)["logits"]
            except (InferenceCancelled, DeviceError):
                said = self.request._conversation.history.caller_count
                self.reference.interrupted(ids, keep, 0, said)
                assert self.reference.said == said
            except NpuwError as error:
                self.hear(ids, keep, 0, lambda refused=error: _again(refused))
            else:
                self.hear(ids, keep, 0, lambda: answer)

    def caches(self) -> list[VariableState]:
        """Return the variables of K and V, without the count of tokens."""
        found = self.request.query_state()
        return [
            each
            for each in found
            if isinstance(each, VariableState) and not isinstance(each, StoredTokensState)
        ]

    def check_rows(self) -> None:
        """Compare all rows of K and V with the stateful model."""
        reference, states = self.reference, self.caches()
        _, rows = reference.logits(self._judge.stateful) if reference.ids else (None, {})
        for each in states:
            found = each.state.data
            assert found.shape[2] == len(reference.held)
            if not reference.held or found.dtype != np.float32:
                continue
            shown = [
                place for place, one in enumerate(reference.held) if reference.kept_shown()[one]
            ]
            expected = rows[each.name][:, :, [reference.held[place] for place in shown]]
            if shown:
                off = np.abs(found[:, :, shown] - expected).max()
                assert off <= self._judge.error * 10 * np.abs(expected).max(), each.name

    def check_given(self) -> None:
        """Check that returned logits were not changed later."""
        for given, copied in self._given:
            assert np.array_equal(given, copied), "logits changed after they were returned"

    def _remember(self, logits: np.ndarray) -> list[np.ndarray]:
        self._given.append((logits, logits.copy()))
        return [*logits[0]]


def _again(error: Exception) -> np.ndarray:
    raise error


def _raises(refused: Refused, answer: Answer) -> None:
    error: NpuwError | None = None
    try:
        answer()
    except NpuwError as found:
        error = found
    refused.check(error)
