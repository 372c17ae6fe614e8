"""A step that a signal's handler interrupts at any bytecode: places and futures stay consistent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.driver.interrupted import interruptions

from npuw_layer.batching import engine as batching
from npuw_layer.batching import participant, places
from npuw_layer.batching.engine import ContinuousBatching
from npuw_layer.batching.request import BatchedRequest
from npuw_layer.batching.runner import Generated
from npuw_layer.errors import RequestError
from npuw_layer.llm.request.parts import ConversationParts

PLACES = 2


class Talk:
    """A place that records its tokens."""

    def __init__(self, *_: Any) -> None:
        self.parts = ConversationParts()
        self.history = SimpleNamespace(said=0)
        counts = SimpleNamespace(cached_tokens=0)
        self.reader = SimpleNamespace(prefill=SimpleNamespace(counts=counts))
        self.ids: list[int] = []

    def reset(self) -> None:
        self.ids, self.history.caller_count = [], 0


class Answers:
    """Runner that answers each token with all tokens of its place."""

    sizes = (1, PLACES)

    def __init__(self, *_: Any) -> None:
        """Do nothing."""

    def read(self, waiting: Any) -> list[Any]:
        """Read nothing: all tokens are generated ones."""
        return [*waiting]

    def generate(self, everyone: Any) -> Generated:
        outcomes = []
        for place, said in everyone:
            del place.ids[said.position :]
            place.ids.append(int(said.ids[said.read]))
            place.history.caller_count = len(place.ids)
            outcomes.append(np.array(place.ids))
        return Generated(outcomes, len(everyone), 0)

    def take_ran(self) -> list[Any]:
        """Return no static models."""
        return []

    def free(self) -> None:
        """Do nothing."""


@pytest.fixture
def engine(monkeypatch) -> ContinuousBatching:
    monkeypatch.setattr(batching, "Runner", Answers)
    monkeypatch.setattr(places, "Conversation", Talk)
    monkeypatch.setattr(batching, "check_slots", lambda *_: None)
    monkeypatch.setattr(batching, "reads_prompt", lambda *_: False)
    nothing = SimpleNamespace(token_inputs=(), token_outputs=(), vocabulary=100)
    compiled = SimpleNamespace(**vars(nothing), traits=(), plan=None, options=None)
    return ContinuousBatching(compiled)


def say(engine: ContinuousBatching, *requests: BatchedRequest, ids: list[int]) -> list[list[int]]:
    """Return the answer of each conversation."""
    futures = [request.submit([number]) for request, number in zip(requests, ids, strict=True)]
    for _ in range(8):
        engine.step()
    return [future.result(0).tolist() for future in futures]


def test_each_conversation_has_its_own_place_after_any_step(engine) -> None:
    first, second, third = (engine.open() for _ in range(3))
    assert say(engine, first, second, ids=[1, 2]) == [[1], [2]]

    def act() -> None:
        second.close()
        futures.append(first.submit([10]))
        futures.append(third.submit([30]))
        engine.step()

    futures: list[Any] = []
    locks = (engine._changed.lock, engine._stepping)
    for _ in interruptions(
        act, *locks, inside=[one.__name__ for one in (batching, participant, places)]
    ):
        for future in futures:  # has a result, or an error that requests another submission
            for _ in range(2):
                if not future.done():
                    engine.step()
            assert future.done()
        held = [one.place for one in engine._conversations.values() if one.place is not None]
        assert len({*map(id, held)}) == len(held)
        assert len(engine._places.all) <= PLACES
        second.close()
        engine.step()
        known = [1]
        first_answer = (first.submit([50], keep=1), engine.step())[0].result(0).tolist()
        assert first_answer == [*known, 50]
        third_answer = (third.submit([60], keep=0), engine.step())[0].result(0).tolist()
        assert third_answer == [60]
        third.close()
        engine.step()
        second, third = engine.open(), engine.open()
        assert say(engine, second, ids=[2]) == [[2]]
        futures.clear()
    engine.close()
    with pytest.raises(RequestError):
        engine.open()
