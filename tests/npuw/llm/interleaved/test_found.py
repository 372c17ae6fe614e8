"""Regressions that the state machine found, as the steps that it printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from interleaved.machine import Ids, Interleaved
from interleaved.pool import pool

Begin = Callable[[str, int], Interleaved]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Return a function that begins with a configuration of a group, and compares all logits."""
    begun: list[Interleaved] = []

    def make(name: str, number: int) -> Interleaved:
        state = Interleaved(pool(name))
        state.compile(number)
        begun.append(state)
        return state

    yield make
    for state in begun:
        state.teardown()


@pytest.mark.long
def test_a_conversation_continues_with_the_exported_and_imported_model(begin: Begin) -> None:
    """A blob knows the identity of its model, though it needs only the weights."""
    state = begin("llama", 0)
    state.prompt(0, Ids(40), 0)
    state.restart(1, imported=True)
    state.go_on(0, Ids(3))


def test_a_conversation_of_set_states_continues_at_any_position(begin: Begin) -> None:
    """The next position and the mask's length together determine the first position."""
    state = begin("llama", 0)
    state.reset(0, 5, by_variable=False)
    state.prompt(0, Ids(20), 0)
    state.open(0)
    state.set_states(0, 1)
    state.go_on(1, Ids(2))
    state.go_back(1, Ids(3), 0.5)


@pytest.mark.matrix
@pytest.mark.parametrize("cancelled", [True, False])
@pytest.mark.parametrize("keep", [0, 1])
def test_an_interrupted_reread_keeps_the_count_of_tokens(
    begin: Begin, cancelled: bool, keep: int
) -> None:
    """A shortened prompt or a full cache, interrupted before the sinks are read again."""
    state = begin("llama on both", 0)
    state.fill(0, 128, 1)
    state.interrupt(0, Ids(70 if keep == 0 else 1), keep, 1, cancelled)
    state.look(0)
    state.go_on(0, Ids(3))
    state.generate(0, Ids(5), greedy=False)
    state.look(0)


@pytest.mark.long
def test_a_conversation_longer_than_the_window_is_shortened_to_it(begin: Begin) -> None:
    """127 tokens, saved where a step takes one, continue where the window is 120 tokens."""
    state = begin("llama", 0)
    state.fill(0, 128, 1)
    state.restart(2, imported=False)
    state.go_on(0, Ids(1))
    state.generate(0, Ids(3), greedy=False)
    state.look(0)


def test_a_prompt_may_follow_sinks(begin: Begin) -> None:
    """A rewind to a token before all replaced rows is as if no row had been replaced."""
    state = begin("llama on both", 1)
    state.fill(0, 128, 0)
    state.generate(0, Ids(5), greedy=False)
    state.go_back(0, Ids(2), 0.02)
    state.go_on(0, Ids(20))


@pytest.mark.long
def test_an_impossible_rewind_in_a_batch_changes_nothing(begin: Begin) -> None:
    """The row before the requested token was replaced."""
    state = begin("llama", 2)
    state.join(0)
    state.batch(0, Ids(60), 0, 9, cancels=False)
    state.batch_generates(Ids(75))
    state.batch(0, Ids(1), 0.05, 3, cancels=False)
    state.batch(0, Ids(1), 1, 3, cancels=False)
