"""Payoff of candidates: what drafting may cost, and when it is tried again. Times are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer.decoding.payoff import Payoff

PLAIN = 10.0
"""Time of a plain step."""


@dataclass
class Run:
    """Steps of a text: candidates are drafted whenever the payoff allows it."""

    step: float
    """Time of a step with candidates."""
    read: float = 0.0
    """Time of an inference of the draft model, one for each of five candidates."""
    payoff: Payoff = field(default_factory=Payoff)
    time: float = 0.0
    tokens: int = 0
    tries: list[int] = field(default_factory=list)
    """Numbers of tokens before the steps with candidates."""

    def go(self, tokens: int, accepted: Callable[[], int], foretold: bool = False) -> None:
        self.payoff.begin()
        end, reads = self.tokens + tokens, 5 if self.read else 0
        while self.tokens < end:
            likely = foretold and self.payoff.allows(0, likely=True)
            if self.payoff.allows(reads) or likely:
                self.tries.append(self.tokens)
                chosen, drafting = 1 + accepted(), reads * self.read
                self.payoff.note_drafted(self.step, chosen, reads, drafting)
                self.time += self.step + drafting
            else:
                chosen = 1
                self.payoff.note_plain(PLAIN)
                self.time += PLAIN
            self.tokens += chosen

    @property
    def speed(self) -> float:
        """Speed as a share of that of plain steps."""
        return PLAIN * self.tokens / self.time


@settings(max_examples=25, deadline=None)
@given(
    st.floats(1, 5),
    st.sampled_from([0.0, 2.0, 9.0]),
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.integers(0, 9),
)
def test_no_text_loses_a_twentieth(times, read, chances, seed) -> None:
    """Each part of a text has a chance of its own that a candidate is accepted."""
    random, run = np.random.default_rng(seed), Run(PLAIN * times, read)
    for chance in chances:
        run.go(700, lambda chance=chance: int((random.random(5) < chance).cumprod().sum()))
    assert run.speed >= 0.95


@pytest.mark.parametrize("before", ["without candidates", "accepted", "rejected"])
@pytest.mark.parametrize("times", [1.8, 2.6])
def test_no_short_text_loses_a_twentieth_whatever_came_before(before: str, times: float) -> None:
    """Savings of a long text, or its gains, are not lost at once in the next one."""
    run = Run(times * PLAIN)
    if before == "without candidates":
        for _ in range(2000):
            run.payoff.note_plain(PLAIN)
    else:
        run.go(2000, lambda: 7 * (before == "accepted"))
    for _ in range(20):
        spent = run.time, run.tokens
        run.go(64, lambda: 0)
        assert (run.tokens - spent[1]) * PLAIN / (run.time - spent[0]) >= 0.95


@pytest.mark.parametrize("read", [0.0, 2.0])
def test_accepted_candidates_are_drafted_in_every_step(read: float) -> None:
    run = Run(3.5 * PLAIN, read)
    run.go(300, lambda: 7)
    assert run.tries == [3 + 8 * number for number in range(len(run.tries))]
    assert run.speed > 1.5


def test_rejected_candidates_are_tried_again_seldom() -> None:
    run = Run(3.5 * PLAIN)
    run.go(2000, lambda: 0)
    gaps = np.diff(run.tries)
    assert 2 < len(run.tries) < 30
    assert min(gaps) > 60


def test_a_dear_draft_model_is_tried_more_seldom() -> None:
    runs = [Run(3.5 * PLAIN, read) for read in (1.0, 4.0)]
    for run in runs:
        run.go(2000, lambda: 0)
    assert len(runs[0].tries) > len(runs[1].tries) > 1


def test_candidates_return_when_they_pay() -> None:
    run = Run(3.5 * PLAIN)
    run.go(600, lambda: 0)
    before = len(run.tries)
    run.go(400, lambda: 7)
    assert len(run.tries) - before > 20


def test_candidates_that_were_foretold_are_drafted_at_once() -> None:
    runs = [Run(3.5 * PLAIN), Run(3.5 * PLAIN)]
    for run, foretold in zip(runs, (False, True), strict=True):
        run.go(100, lambda: 0)
        before = run.tokens
        run.go(9, lambda: 7, foretold)
        assert (run.tries[-1] >= before) == foretold


def test_tokens_that_are_read_again_are_a_loss_of_the_candidates() -> None:
    payoff = Payoff()
    for _ in range(100):
        payoff.note_plain(PLAIN)
    payoff.note_drafted(2 * PLAIN, 3, 0, 0.0)
    assert payoff.allows(0)
    payoff.note_again(5 * PLAIN)
    assert not payoff.allows(0)


def test_close_choices_are_expected_until_some_were_not_close_and_after_one_that_was() -> None:
    payoff, expected = Payoff(), list[bool]()
    for close in [*[False] * 20, True, *[False] * 20]:
        payoff.note_choice(close)
        expected.append(payoff.expects_close)
    assert (expected[0], expected[19], expected[20], expected[-1]) == (True, False, True, False)
