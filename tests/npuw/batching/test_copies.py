"""Copies of conversations: each continues as if it had read all tokens itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer.batching import BatchedRequest
from npuw_layer.batching.engine import ContinuousBatching
from npuw_layer.errors import DeviceError, RequestError
from npuw_layer.llm.request.conversation import Conversation

ROW = st.integers(0, 3)
ACT = st.one_of(
    st.tuples(st.just("copy"), ROW, ROW),
    st.tuples(st.just("read"), st.lists(st.integers(0, 96), min_size=4, max_size=4), ROW),
)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": 16},
        {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
        {"NPUW_LLM_ON_FULL": "SLIDE", "NPUW_LLM_SINK_TOKENS": 2},
    ],
    ids=["plain", "blocks", "transposed V", "sliding"],
)
@settings(max_examples=8, deadline=None)
@given(acts=st.lists(ACT, max_size=8), places=st.integers(1, 4), count=st.integers(1, 190))
def test_copies_and_originals_continue_independently(
    talks, crowd, extra: dict[str, Any], acts: list[Any], places: int, count: int
) -> None:
    """Four rows in any number of places, each with tokens that others lack, copied at random."""
    options = crowd.SLOTS | extra
    engine = ContinuousBatching(talks(**options).request._compiled, places)
    prompt = [index * 7 % 97 for index in range(count if "NPUW_LLM_ON_FULL" in extra else 20)]
    rows = [engine.open() for _ in range(4)]
    first = rows[0].submit(prompt)
    crowd.run(engine)
    histories = [[*prompt] for _ in rows]
    for row in rows[1:]:
        row.copy_from(rows[0])
    del first
    for kind, *values in [*acts, ("read", [1, 2, 3, 4], 3)]:
        if kind == "copy" and values[0] != values[1]:
            rows[values[0]].copy_from(rows[values[1]])
            histories[values[0]] = [*histories[values[1]]]
        elif kind == "read":
            tokens, last = values
            futures = _submit(rows[: last + 1], tokens, histories)
            crowd.run(engine)
            for future, history in zip(futures, histories, strict=False):
                assert crowd.same([future.result(0)], [_alone(talks(**options), prompt, history)])


def _submit(rows: list[BatchedRequest], tokens: list[int], histories: list[list[int]]) -> list[Any]:
    for history, token in zip(histories, tokens[: len(rows)], strict=False):
        history.append(token)
    return [row.submit([token]) for row, token in zip(rows, tokens, strict=False)]


def _alone(talk: Any, prompt: list[int], tokens: list[int]) -> np.ndarray:
    """Return the logits of a prompt, then of single tokens."""
    logits = talk.tell(prompt)
    for token in tokens[len(prompt) :]:
        logits = talk.tell([token])
    return logits


def test_a_place_beyond_the_limit_is_given_up_with_its_copy(batching, crowd) -> None:
    engine = batching(places=1)
    original, waiting = engine.open(), engine.open()
    original.submit([1, 2, 3])
    crowd.run(engine)
    copies = [engine.open() for _ in range(2)]
    for one in copies:
        one.copy_from(original)
    assert len(engine.observe().places) == 3
    pending = waiting.submit([4])
    crowd.run(engine)
    for one in copies:
        one.close()
    crowd.run(engine)
    assert not pending.done(), "a conversation that is no copy waits for the only place"
    original.close()
    crowd.run(engine)
    assert len(engine.observe().places) == 1
    assert pending.done()


def test_a_copy_needs_two_conversations_at_rest(batching, crowd) -> None:
    engine = batching(**crowd.CHUNKED)
    one, two = engine.open(), engine.open()
    with pytest.raises(RequestError, match="stored tokens"):
        two.copy_from(one)
    one.submit([1] * 40)
    engine.step()
    with pytest.raises(RequestError, match="are being read"):
        two.copy_from(one)
    crowd.run(engine)
    with pytest.raises(RequestError, match="another one"):
        one.copy_from(one)
    pending = two.submit([5])
    with pytest.raises(RequestError, match="without pending tokens"):
        two.copy_from(one)
    one.submit([2]).add_done_callback(lambda _: two.copy_from(one))
    crowd.run(engine)
    assert pending.done()
    assert two.stored == 1, "a callback within a step copies nothing"
    one.close()
    with pytest.raises(RequestError, match="closed"):
        two.copy_from(one)


def test_tokens_that_are_not_read_yet_are_not_copied(batching, talks, crowd) -> None:
    engine = batching()
    one, two = engine.open(), engine.open()
    one.submit([1, 2])
    crowd.run(engine)
    before = one.submit([3])
    two.copy_from(one)
    after = two.submit([4])
    crowd.run(engine)
    found = [before.result(0), after.result(0)]
    expected = [_alone(talks(**crowd.SLOTS), [1, 2], [1, 2, token]) for token in (3, 4)]
    assert crowd.same(found, expected)


def test_a_failed_copy_has_no_tokens(batching, crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = batching()
    one, two = engine.open(), engine.open()
    for row in (one, two):
        row.submit([1, 2])
    crowd.run(engine)
    with monkeypatch.context() as patch:
        patch.setattr(Conversation, "copy_from", _fail)
        with pytest.raises(DeviceError, match="memory"):
            two.copy_from(one)
    assert (one.stored, two.stored) == (2, 0)
    again = [row.submit(ids) for row, ids in ((one, [3]), (two, [1, 2, 3]))]
    crowd.run(engine)
    assert crowd.same([again[0].result(0)], [again[1].result(0)])


def _fail(*_: object) -> None:
    raise DeviceError("device memory is exhausted")
