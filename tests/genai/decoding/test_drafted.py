"""Speculative decoding: whatever the candidates, text, score and reason are those without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer import RawPerfMetrics
from genai_layer.decoding.drafters import CandidateCount, DraftModelDrafter, PromptLookup, following
from genai_layer.decoding.language_model import LanguageModel
from genai_layer.decoding.payoff import AlwaysPays, Payoff
from genai_layer.decoding.reads import Drafter
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.generation_config import UNSET
from genai_layer.streamers import StreamingStatus
from genai_layer.testing.memory_runtime import MemoryRequest, chain

LETTERS = 12


def table_of(seed: int, peak: float = 4.0) -> np.ndarray:
    table = np.random.default_rng(seed).standard_normal((LETTERS, LETTERS))
    return (peak * table).astype(np.float32)


def draft_of(table: np.ndarray, count: CandidateCount, **options: Any) -> DraftModelDrafter:
    raw = RawPerfMetrics()
    model = LanguageModel(StoredTokens(MemoryRequest(table, 1 << 16)), raw)
    return DraftModelDrafter(model, raw, count, room=options.pop("room", UNSET), **options)


class Erratic(AlwaysPays):
    """Payoff that allows candidates at random."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)

    def allows(self, reads: int, likely: bool = False) -> bool:
        return self._draw.random() < 0.5


def payoff_of(seed: int) -> AlwaysPays:
    return (AlwaysPays(), Payoff(), Erratic(seed))[seed % 3]


class Liar:
    """Drafter of candidates that are drawn at random."""

    def __init__(self, seed: int) -> None:
        self.count = CandidateCount(9, 9, payoff=payoff_of(seed))
        self._draw = np.random.default_rng(seed)

    def begin(self) -> None: ...

    def reads(self, tokens: Sequence[int]) -> int:
        return len(tokens) % 3

    def foretold(self, tokens: Sequence[int]) -> bool:
        return len(tokens) % 2 > 0

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        del tokens
        return self._draw.integers(0, LETTERS, min(most, int(self._draw.integers(0, 9)))).tolist()

    def finish(self) -> None: ...


PARAMETERS = st.fixed_dictionaries(
    {"max_new_tokens": st.integers(1, 30)},
    optional={
        "stop_token_ids": st.sets(st.integers(0, LETTERS - 1), max_size=2),
        "stop_strings": st.sets(st.text("abcdefghijkl", min_size=1, max_size=3), max_size=2),
        "include_stop_str_in_output": st.booleans(),
        "ignore_eos": st.booleans(),
        "echo": st.booleans(),
        "logprobs": st.integers(0, 1),
        "repetition_penalty": st.sampled_from([1.0, 1.4]),
        "presence_penalty": st.sampled_from([0.0, 0.7]),
        "frequency_penalty": st.sampled_from([0.0, 0.4]),
        "do_sample": st.booleans(),
        "temperature": st.sampled_from([0.6, 2.0]),
        "top_k": st.sampled_from([3, 50]),
        "rng_seed": st.integers(0, 5),
    },
)


@st.composite
def drafters(draw: st.DrawFn, target: int) -> Drafter:
    """Draw a drafter: a draft model like the target or unlike it, a lookup, or random tokens."""
    payoff = payoff_of(draw(st.integers(0, 99)))
    count = CandidateCount(draw(st.integers(1, 7)), 9, draw(st.booleans()), payoff)
    kind = draw(st.sampled_from(["model", "lookup", "liar"]))
    if kind == "lookup":
        return PromptLookup(draw(st.integers(1, 4)), count)
    if kind == "liar":
        return Liar(draw(st.integers(0, 99)))
    noise = draw(st.sampled_from([0.0, 1.0, 4.0]))
    table = table_of(target) + noise * table_of(target + 1, 1.0)
    room = draw(st.sampled_from([UNSET, 12]))
    return draft_of(table, count, room=room, threshold=draw(st.sampled_from([0.0, 0.6])))


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_candidates_change_nothing(decodes, data) -> None:
    target, parameters = data.draw(st.integers(0, 9)), data.draw(PARAMETERS)
    prompt = data.draw(st.lists(st.integers(0, LETTERS - 1), min_size=1, max_size=9))
    capacity = data.draw(st.sampled_from([UNSET, 1, 5, 11]))
    parameters["min_new_tokens"] = data.draw(st.integers(0, parameters["max_new_tokens"]))
    inputs = table_of(target), prompt, capacity
    drafter = data.draw(drafters(target))
    (plain,) = decodes(*inputs, **parameters)
    (found,) = decodes(*inputs, drafter=drafter, **parameters)
    assert (found.tokens, found.text, found.score, found.finish_reason) == (
        plain.tokens,
        plain.text,
        plain.score,
        plain.finish_reason,
    )
    assert drafter.count.accepted <= min(len(found.tokens), drafter.count.drafted)


def test_a_draft_equal_to_the_model_is_always_accepted(decodes) -> None:
    table, drafter = table_of(3), draft_of(table_of(3), CandidateCount(4, 4))
    (found,) = decodes(table, (1, 2), drafter=drafter, max_new_tokens=21, ignore_eos=True)
    assert len(found.tokens) == 21
    assert drafter.count.accepted == drafter.count.drafted == 16, "1 token, then 4 steps of 5"


def test_a_close_choice_reads_few_of_the_accepted_tokens_again(decodes, monkeypatch) -> None:
    """A long accepted text would otherwise take longer than without candidates."""

    class Right(Liar):
        def draft(self, tokens: Sequence[int], most: int) -> list[int]:
            return [*range(tokens[-1] + 1, tokens[-1] + 1 + min(most, 8, 149 - tokens[-1]))]

    table = chain(range(150), 150)
    table[140, 7] = 9.99
    infer, singles = MemoryRequest.infer, []

    def counted(self: MemoryRequest, inputs: Any) -> object:
        singles.append(inputs["input_ids"].shape[1] == 1)
        return infer(self, inputs)

    monkeypatch.setattr(MemoryRequest, "infer", counted)
    (found,) = decodes(table, drafter=Right(0), max_new_tokens=149, ignore_eos=True)
    assert found.tokens == [*range(1, 150)]
    assert 60 < sum(singles) < 70


def test_an_unlike_draft_is_never_accepted(decodes) -> None:
    down = chain([*range(LETTERS - 1, -1, -1), LETTERS - 1], LETTERS)
    up = chain([*range(LETTERS), 0], LETTERS)
    drafter = draft_of(down, CandidateCount(4, 4))
    (found,) = decodes(up, (0,), drafter=drafter, max_new_tokens=9, ignore_eos=True)
    assert found.tokens == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert drafter.count.accepted == 0


def test_a_streamer_that_stops_within_a_step_gets_no_further_token(decodes) -> None:
    class Stops:
        def __init__(self) -> None:
            self.seen: list[int] = []

        def write(self, token: int, text: str) -> StreamingStatus:
            del text
            self.seen.append(token)
            return StreamingStatus.STOP if len(self.seen) == 4 else StreamingStatus.RUNNING

        def end(self, text: str) -> None: ...

    sink, table = Stops(), chain(range(LETTERS), LETTERS)
    drafter = draft_of(table, CandidateCount(9, 9))
    (found,) = decodes(table, drafter=drafter, sink=sink, max_new_tokens=11)
    assert found.tokens == sink.seen == [1, 2, 3, 4]


def test_a_constraint_sees_the_chosen_tokens_alone(decodes) -> None:
    class Ascends:
        """Constraint to higher tokens than the last, or the lowest."""

        def __init__(self) -> None:
            self.seen = [0]

        def prepare(self) -> None: ...

        def process(self, logits: np.ndarray) -> np.ndarray:
            ids = np.arange(len(logits))
            return np.where((ids > self.seen[-1]) | (ids == 0), logits, -np.inf)

        def advance(self, token: int) -> None:
            self.seen.append(token)

    table, both = table_of(1), [Ascends(), Ascends()]
    options = {"max_new_tokens": 25, "ignore_eos": True}
    (plain,) = decodes(table, constraint=both[0], **options)
    drafter = draft_of(table, CandidateCount(4, 4))
    (found,) = decodes(table, constraint=both[1], drafter=drafter, **options)
    assert found.tokens == plain.tokens == both[0].seen[1:] == both[1].seen[1:]
    assert 0 < drafter.count.accepted < drafter.count.drafted


def test_the_number_of_candidates_adapts() -> None:
    count, values = CandidateCount(5, 10, adapts=True), []
    for accepted in (5, 7, 9, 10, 3, 0, 0):
        count.note(count.value, accepted)
        values.append(count.value)
    assert values == [7, 9, 10, 10, 9, 8, 7]
    fixed = CandidateCount(5, 10)
    fixed.note(5, 5)
    assert fixed.value == 5


def test_a_draft_ends_with_the_first_unsure_candidate() -> None:
    table = chain([0, 1, 2, 3, 4], LETTERS)
    table[2] = 0  # all tokens are equally likely
    sure = draft_of(table, CandidateCount(9, 9), threshold=0.5)
    sure.begin()
    assert sure.draft([0], 9) == [1, 2, 0]


def test_no_candidate_follows_a_stop_token() -> None:
    drafter = draft_of(chain(range(LETTERS), LETTERS), CandidateCount(9, 9), stops={3})
    drafter.begin()
    assert drafter.draft([0], 9) == [1, 2, 3]


def test_a_lookup_knows_whether_it_would_have_been_right() -> None:
    lookup = PromptLookup(2, CandidateCount(3, 3))
    assert lookup.foretold([1, 2, 3, 4, 5, 1, 2, 3, 4, 5])
    assert not lookup.foretold([1, 2, 3, 4, 5, 1, 2, 3, 4, 6])
    assert not lookup.foretold([1, 2])


@pytest.mark.parametrize(
    ("tokens", "longest", "place"),
    [
        ([1, 2, 3, 9, 1, 2], 3, 2),
        ([1, 2, 3, 9, 2], 3, 2),
        ([1, 2, 1, 2], 9, 2),  # at most half of the text is searched
        ([7, 1, 2, 5, 1, 2, 6, 1, 2], 2, 3),  # the first place
        ([1, 2, 3], 3, 3),
        ([1], 3, 1),
    ],
)
def test_the_longest_run_is_looked_up(tokens: list[int], longest: int, place: int) -> None:
    assert following(tokens, longest) == place
