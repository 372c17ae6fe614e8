"""Life cycle of a conversation: states, events, and the effect of each event in each state.

A conversation's state is computed from the stored tokens, so an interrupt never leaves it wrong.
Each row of ``TABLE`` has a state, an event, its act and the next state:

    idle        prompt    begin      prefilling   chunks by cheapest
    idle        step      start      generating   the variant by select_generate_request
    prefilling  read      select     generating   rows are in place, or copied before the next run;
                                                  SLIDE reads the rest of a long prompt by steps
    generating  step      step       generating   after a full variant, the next reads the same rows
    generating  filled    nothing    full         no variant has room for one more token
    generating  text      read on    prefilling   after the stored rows
    full        step      make room  generating   TRUNCATE; ERROR rejects, SLIDE is never full
    full        text      read on    prefilling
    any         prompt    begin      prefilling   all stored rows are forgotten

Before a step or a text, and at any time from outside, a conversation may rewind: it keeps its first
tokens, and is then idle, generating or full according to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class State(Enum):
    """State of a conversation by the tokens it stores."""

    IDLE = "nothing"
    PREFILLING = "part of a prompt: reading is in progress, or was given up"
    GENERATING = "the complete token history"
    FULL = "the complete token history, without room for one more token"


class Event(Enum):
    """Event in a conversation."""

    PROMPT = "several tokens come at the first position"
    TEXT = "more tokens follow the stored ones than one step takes"
    STEP = "tokens follow the stored ones, at most as many as one step takes"
    READ = "the last chunk of a prompt was read"
    FILLED = "a step took the last room"


class Act(Enum):
    """Act in response to an event."""

    BEGIN = "forget everything, and read a prompt"
    READ_ON = "read a prompt after the stored tokens"
    SELECT = "choose a variant with room for a response"
    START = "choose a variant, and run a step"
    STEP = "run a step"
    MAKE_ROOM = "drop the middle of the history, read the rest again, and run a step"
    NOTHING = "nothing"


class Transition(NamedTuple):
    """A row of the table."""

    act: Act
    next: State


TABLE: Mapping[tuple[State, Event], Transition] = {
    (State.IDLE, Event.PROMPT): Transition(Act.BEGIN, State.PREFILLING),
    (State.IDLE, Event.STEP): Transition(Act.START, State.GENERATING),
    (State.PREFILLING, Event.READ): Transition(Act.SELECT, State.GENERATING),
    (State.PREFILLING, Event.PROMPT): Transition(Act.BEGIN, State.PREFILLING),
    (State.GENERATING, Event.STEP): Transition(Act.STEP, State.GENERATING),
    (State.GENERATING, Event.FILLED): Transition(Act.NOTHING, State.FULL),
    (State.GENERATING, Event.TEXT): Transition(Act.READ_ON, State.PREFILLING),
    (State.GENERATING, Event.PROMPT): Transition(Act.BEGIN, State.PREFILLING),
    (State.FULL, Event.STEP): Transition(Act.MAKE_ROOM, State.GENERATING),
    (State.FULL, Event.TEXT): Transition(Act.READ_ON, State.PREFILLING),
    (State.FULL, Event.PROMPT): Transition(Act.BEGIN, State.PREFILLING),
}
