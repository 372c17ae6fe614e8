"""Scripts of conversations, run alone or together with others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from npuw_layer.batching import BatchedRequest, ContinuousBatching, StepReport

SLOTS = {"NPUW_LLM_BATCH_SLOTS": "2,4"}
LADDER = {**SLOTS, "NPUW_LLM_GENERATE_PYRAMID_STEPS": "24,72"}
CHUNKED = {**LADDER, "NPUW_LLM_PREFILL_CHUNK_SIZE": 16}

Logits = list[np.ndarray]
Script = Generator[tuple[list[int], int], np.ndarray, None]
Batching = Callable[..., ContinuousBatching]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: rewind some tokens, submit others, and generate ``answer`` tokens."""

    ids: list[int]
    back: int = 0
    answer: int = 0


class Crowd:
    """Ways to run conversations, and to compare their logits."""

    SLOTS, LADDER, CHUNKED, Turn = SLOTS, LADDER, CHUNKED, Turn

    @staticmethod
    def script(turns: Sequence[Turn]) -> Script:
        """Yield a conversation's next tokens and rewinds, given the last logits."""
        for turn in turns:
            logits = yield turn.ids, turn.back
            for _ in range(turn.answer):
                logits = yield [int(logits.argmax())], 0

    @staticmethod
    def alone(talk: Any, turns: Sequence[Turn]) -> Logits:
        """Return all logits of a conversation that runs alone."""
        said, found = Crowd.script(turns), list[np.ndarray]()
        ids, back = next(said)
        while True:
            found.append(talk.tell(ids, min(back, talk.said)).copy())
            try:
                ids, back = said.send(found[-1])
            except StopIteration:
                return found

    @staticmethod
    def begin(request: BatchedRequest, turns: Sequence[Turn]) -> Logits:
        """Run a conversation by futures only; each step extends the list of logits."""
        said, found = Crowd.script(turns), list[np.ndarray]()

        def submit(ids: list[int], back: int) -> None:
            keep = request.stored - min(back, request.stored)
            request.submit(ids, keep).add_done_callback(heard)

        def heard(logits: Any) -> None:
            found.append(logits.result())
            try:
                submit(*said.send(found[-1]))
            except StopIteration:
                request.close()

        submit(*next(said))
        return found

    @staticmethod
    def run(engine: ContinuousBatching) -> list[StepReport]:
        """Run steps until no conversation has pending tokens."""
        reports: list[StepReport] = []
        while engine.wait(0):
            reports.append(engine.step())
            assert len(reports) < 500, "a conversation is never served"
        return reports

    @staticmethod
    def same(found: Logits, expected: Logits, error: float = 1e-5) -> bool:
        """Return whether all logits are equal, except for the order of sums."""
        return len(found) == len(expected) and all(
            np.abs(a - b).max() <= error * np.abs(b).max()
            for a, b in zip(found, expected, strict=True)
        )


@pytest.fixture(scope="session")
def crowd() -> type[Crowd]:
    return Crowd


@pytest.fixture
def batching(talks: Any) -> Batching:
    """Create an engine on the tiny model."""

    def make(places: int = 0, **options: Any) -> ContinuousBatching:
        return ContinuousBatching(talks(**(options or SLOTS)).request._compiled, places)

    return make
