"""Conversations as scripts, spoken alone or among others."""

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
    """Go back some tokens, say others, and let the model answer with so many."""

    ids: list[int]
    back: int = 0
    answer: int = 0


class Crowd:
    """Ways to let conversations speak, and to compare what they hear."""

    SLOTS, LADDER, CHUNKED, Turn = SLOTS, LADDER, CHUNKED, Turn

    @staticmethod
    def script(turns: Sequence[Turn]) -> Script:
        """What a conversation says next, and how far it goes back, given the last logits."""
        for turn in turns:
            logits = yield turn.ids, turn.back
            for _ in range(turn.answer):
                logits = yield [int(logits.argmax())], 0

    @staticmethod
    def alone(talk: Any, turns: Sequence[Turn]) -> Logits:
        """All logits of a conversation that has the device for itself."""
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
        """Speak through futures alone; the list fills with each step, then the request leaves."""
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
        """Make steps until nobody has anything to say."""
        reports: list[StepReport] = []
        while engine.wait(0):
            reports.append(engine.step())
            assert len(reports) < 500, "somebody is never served"
        return reports

    @staticmethod
    def same(found: Logits, expected: Logits, error: float = 1e-5) -> bool:
        """Whether all logits are the same, but for sums in another order."""
        return len(found) == len(expected) and all(
            np.abs(a - b).max() <= error * np.abs(b).max()
            for a, b in zip(found, expected, strict=True)
        )


@pytest.fixture(scope="session")
def crowd() -> type[Crowd]:
    return Crowd


@pytest.fixture
def batching(talks: Any) -> Batching:
    """Make an engine on the tiny model."""

    def make(places: int = 0, **options: Any) -> ContinuousBatching:
        return ContinuousBatching(talks(**(options or SLOTS)).request._compiled, places)

    return make
