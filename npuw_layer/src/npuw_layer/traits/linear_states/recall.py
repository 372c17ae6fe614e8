"""What layers with states have to read anew when a conversation goes back.

K and V of the tokens that stay are there; states are of tokens that were taken back, too. So they
go back to where they are known (``states``), and everything is read anew from there on.
"""

from __future__ import annotations

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import StateError
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.traits.linear_states.states import LinearStates


def check_recall(states: LinearStates, history: History, kept: int) -> None:
    """See that what is to be read anew is known.

    Args:
        states: where they would go back is what counts.
        history: of the conversation.
        kept: tokens that are to stay.

    Raises:
        StateError: it was set from outside; nothing has changed.
    """
    begin = states.place_of(kept)
    if begin < kept and begin < history.unknown:
        raise StateError(
            f"going back to token {kept} means reading anew from token {begin} on, but "
            f"{history.unknown} tokens were set by set_state: they are not known; reset_state()"
        )


def recalled(states: LinearStates, history: History, cache: KVStrategy, mask: Array) -> NewTokens:
    """Forget what is to be read anew, and give it; nothing if states are where they should be.

    Args:
        states: went back, perhaps further than the rest.
        history: of all that stays.
        cache: K and V of it.
        mask: over it, and what is new.
    """
    kept, begin = history.count, states.tokens
    if not states.names or begin >= kept:
        return NewTokens.none()
    forgotten = history.since(begin, mask[:kept])
    history.forget(begin)
    cache.truncate(begin)
    return forgotten
