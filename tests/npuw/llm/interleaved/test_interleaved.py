"""Interleaved conversations equal one unchunked run on the interpreter.

Each group has a few random conversations; ``fuzz_interleaved.py`` runs any number.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from interleaved.machine import Ids, Interleaved
from interleaved.pool import FEW, GROUPS, pool

PROFILE = settings(
    max_examples=6,
    stateful_step_count=25,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.long
@pytest.mark.parametrize("name", FEW)
def test_interleaved_conversations_equal_separate_ones(name: str) -> None:
    run_state_machine_as_test(lambda: Interleaved(pool(name)), settings=PROFILE)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name in FEW for number in range(len(GROUPS[name].configurations))],
)
def test_a_scripted_conversation_covers_all_events(name: str, number: int) -> None:
    """Events that random conversations reach after many steps, once for each configuration."""
    state = Interleaved(pool(name))
    state.compile(number)
    _talk(state)
    _gather(state)
    state.restart(number + 1, imported=True)
    for who in (0, 1):
        state.generate(who, Ids(3), greedy=True)
        state.look(who)
    state.teardown()


def _talk(state: Interleaved) -> None:
    """Run two requests: common prefixes, rewinds, a full cache, a lost device, a saved file."""
    state.prompt(0, Ids(50, 2, 20), 0)
    state.open(1)
    state.prompt(1, Ids(50, 3, 40), 3)
    state.reset(1, 1, by_variable=True)
    state.generate(0, Ids(12), greedy=True)
    state.prompt(0, Ids(60, 1, 45), 0)
    state.prompt(1, Ids(60, 2, 45), 0)
    for who in (0, 1):  # they differ from the last token of a block on
        state.prompt(who, Ids(20, 1 + who, 7), 0)
    state.go_back(0, Ids(5), 0.5)
    state.fill(0, 128, 1)
    state.generate(0, Ids(4), greedy=False)
    state.interrupt(1, Ids(40), 0, 2, cancelled=False)
    state.interrupt(1, Ids(40, 5), 0, 3, cancelled=False)
    state.go_on(1, Ids(2))
    state.generate(1, Ids(3), greedy=False)
    state.look(1)
    state.all_at_once(Ids(1), asynchronous=True)
    state.save_and_load(0, 1)
    state.generate(1, Ids(3), greedy=False)
    state.go_back(1, Ids(1), 0.97)
    state.look(0)
    state.look(1)


def _gather(state: Interleaved) -> None:
    """Run a batch of three conversations across a variant, one after a failure."""
    for _ in range(3):
        state.join(0)
    for who in range(3):
        state.batch(who, Ids(9 + 5 * who, who), 0, 0, cancels=False)
    state.batch_generates(Ids(9))
    state.leave(0)
    state.batch(0, Ids(1), 1, 0, cancels=False)
    state.batch(1, Ids(1), 0.5, 0, cancels=False)
    state.batch_fails(1)
    state.join(0)
    state.batch(2, Ids(30, 2, 20), 0, 1, cancels=False)
    state.batch_generates(Ids(4))
