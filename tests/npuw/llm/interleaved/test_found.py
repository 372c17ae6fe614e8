"""What the machine found, and what is done about it: its steps, as it prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from interleaved.machine import Ids, Interleaved
from interleaved.pool import pool

Begin = Callable[[str, int], Interleaved]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begin with a configuration of a group; all that is said is compared."""
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
def test_a_conversation_goes_on_with_the_model_exported_and_imported(begin: Begin) -> None:
    """A blob knows the model that it is of, though it needs its weights alone."""
    state = begin("llama", 0)
    state.prompt(0, Ids(40), 0)
    state.restart(1, imported=True)
    state.go_on(0, Ids(3))


def test_states_that_are_set_go_on_at_any_position(begin: Begin) -> None:
    """Where their first token was, the next one's position and the mask's length say together."""
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
def test_a_history_that_is_not_read_again_to_its_end_counts_as_far_as_it_was(
    begin: Begin, cancelled: bool, keep: int
) -> None:
    """A prompt that is cut, or a full cache; stopped before even the sinks are read again."""
    state = begin("llama on both", 0)
    state.fill(0, 128, 1)
    state.interrupt(0, Ids(70 if keep == 0 else 1), keep, 1, cancelled)
    state.look(0)
    state.go_on(0, Ids(3))
    state.generate(0, Ids(5), greedy=False)
    state.look(0)


@pytest.mark.long
def test_a_conversation_longer_than_the_window_slides_into_it(begin: Begin) -> None:
    """127 tokens, saved where a step takes one, go on where a window is 120 tokens."""
    state = begin("llama", 0)
    state.fill(0, 128, 1)
    state.restart(2, imported=False)
    state.go_on(0, Ids(1))
    state.generate(0, Ids(3), greedy=False)
    state.look(0)


def test_a_prompt_may_follow_sinks(begin: Begin) -> None:
    """Whoever goes back to where no row was given away yet is as if none ever had been."""
    state = begin("llama on both", 1)
    state.fill(0, 128, 0)
    state.generate(0, Ids(5), greedy=False)
    state.go_back(0, Ids(2), 0.02)
    state.go_on(0, Ids(20))


@pytest.mark.long
def test_who_cannot_go_back_in_a_batch_still_has_everything(begin: Begin) -> None:
    """To a token whose row was given away: the refusal changes nothing."""
    state = begin("llama", 2)
    state.join(0)
    state.batch(0, Ids(60), 0, 9, cancels=False)
    state.batch_generates(Ids(75))
    state.batch(0, Ids(1), 0.05, 3, cancels=False)
    state.batch(0, Ids(1), 1, 3, cancels=False)
