"""The table of a conversation's life cycle, row by row, on a real conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from npuw_layer.errors import CapacityError
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.life_cycle import TABLE, Act, Event, State
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.reader import Reading
from npuw_layer.tensors.names import IDS, POSITIONS

ROOM = 127
"""Tokens after which no variant has room: 128 positions, one for the new token."""

OPTIONS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 16,
    "NPUW_LLM_ON_FULL": "TRUNCATE",
}


def tokens(begin: int, count: int) -> NewTokens:
    positions = np.arange(begin, begin + count)
    return NewTokens({IDS: positions % 97, POSITIONS: positions}, np.ones(begin + count, np.int64))


def step(talk: Conversation) -> None:
    talk.infer(tokens(talk.history.caller_count, 1))


class Life:
    """A conversation in a given state, and the acts since then."""

    def __init__(self, talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
        self.talk, self.acts = talk, list[Act]()
        self._reading: Reading | None = None
        reader = talk.reader
        for owner, name, act in (
            (talk, "_begin", Act.BEGIN),
            (reader, "start", Act.START),
            (reader, "make_room", Act.MAKE_ROOM),
            (reader, "step", Act.STEP),
            (reader, "prompt", Act.READ_ON),
            (reader.generate, "select", Act.SELECT),
        ):
            monkeypatch.setattr(owner, name, self._noting(getattr(owner, name), act))

    def _noting(self, method: Callable[..., Any], act: Act) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            self.acts.append(act)
            return method(*given)

        return call

    def bring_to(self, state: State) -> None:
        talk = self.talk
        if state is State.PREFILLING:
            self._reading = talk.reading(tokens(0, 40))
            next(self._reading)
        elif state is not State.IDLE:
            talk.infer(tokens(0, 40))
            while state is State.FULL and talk.history.caller_count < ROOM:
                step(talk)
        assert talk.state is state
        self.acts.clear()

    def meet(self, event: Event) -> State:
        """Cause an event; return the first state that differs afterwards, or the last state."""
        talk, said = self.talk, self.talk.history.caller_count
        if event is Event.PROMPT:
            return self._first(talk.reading(tokens(0, 40)))
        if event is Event.TEXT:
            return self._first(talk.reading(tokens(said, 3 if said == ROOM else 20)))
        if event is Event.READ:
            assert self._reading is not None
            list(self._reading)
        elif event is Event.FILLED:
            while talk.history.caller_count < ROOM:
                step(talk)
        else:
            step(talk)
        return talk.state

    def _first(self, reading: Iterator[int]) -> State:
        next(reading, None)
        return self.talk.state


@pytest.mark.parametrize(("state", "event"), TABLE, ids=lambda each: each.name)
def test_each_event_has_the_act_of_the_table(talks, monkeypatch, state, event) -> None:
    life = Life(talks(**OPTIONS).request._conversation, monkeypatch)
    life.bring_to(state)
    expected = TABLE[state, event]
    found = life.meet(event)
    if (state, event) == (State.FULL, Event.TEXT):  # kept tokens are read again first
        assert life.acts[0] is Act.MAKE_ROOM
        assert expected.act in life.acts
        return
    assert found is expected.next
    if expected.act is not Act.NOTHING:
        assert life.acts[0] is expected.act


def test_events_missing_in_the_table_cannot_happen() -> None:
    missing = {*product(State, Event)} - {*TABLE}
    assert missing == {
        (State.IDLE, Event.TEXT),  # several tokens at the first position are a prompt
        (State.IDLE, Event.READ),
        (State.IDLE, Event.FILLED),
        (State.PREFILLING, Event.STEP),  # rewinds to kept tokens first, then generates
        (State.PREFILLING, Event.TEXT),
        (State.PREFILLING, Event.FILLED),
        (State.GENERATING, Event.READ),
        (State.FULL, Event.READ),
        (State.FULL, Event.FILLED),
    }


@pytest.mark.parametrize("state", State, ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("keep", "behind"), [(0, State.IDLE), (10, State.GENERATING)], ids=["to nothing", "to some"]
)
def test_a_rewound_conversation_is_in_the_state_of_its_kept_tokens(
    talks, monkeypatch, state, keep, behind
) -> None:
    life = Life(talks(**OPTIONS).request._conversation, monkeypatch)
    life.bring_to(state)
    if keep <= life.talk.history.caller_count:
        life.talk.rewind(keep)
        assert life.talk.state is behind
    life.talk.reset()
    assert life.talk.state is State.IDLE


def test_a_full_conversation_rejects_a_step_unless_it_may_drop_tokens(talks, monkeypatch) -> None:
    life = Life(talks(**OPTIONS | {"NPUW_LLM_ON_FULL": "ERROR"}).request._conversation, monkeypatch)
    life.bring_to(State.FULL)
    with pytest.raises(CapacityError):
        step(life.talk)
    assert life.talk.state is State.FULL
    assert not life.acts


def test_an_abandoned_prompt_continues_where_it_stopped(talks, monkeypatch) -> None:
    life = Life(talks(**OPTIONS).request._conversation, monkeypatch)
    life.bring_to(State.PREFILLING)
    life.talk.infer(tokens(life.talk.history.caller_count, 20))
    assert life.talk.state is State.GENERATING
