"""npuw_stored_tokens_state: propose a number of tokens to keep, and continue after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.npuw.conftest import SMALL, Talk
from tests.npuw.faulty_device import FaultyDevice

from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.errors import (
    DeviceError,
    InferenceCancelled,
    OptionError,
    PromptTooLong,
    RequestBusy,
    StateError,
    TensorError,
)
from npuw_layer.llm.request.infer_request import InferRequest
from npuw_layer.llm.request.variable_state import StoredTokensState

CHUNKED = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16}
IDS = np.random.default_rng(11).integers(0, 97, 300).tolist()


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max())


@pytest.fixture(scope="module")
def unchunked(tiny: Path) -> Interpreter:
    """Return the stateful model: one graph, the complete prompt in one run."""
    return Interpreter(read_folder(tiny))


def whole(interpreter: Interpreter, ids: list[int], first: int = 0) -> np.ndarray:
    interpreter.reset()
    count = len(ids)
    inputs = {
        "input_ids": np.array([ids]),
        "attention_mask": np.ones((1, count), np.int64),
        "position_ids": np.arange(first, first + count)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    return interpreter.run(inputs)["logits"][0, -1]


def stored(talk: Talk) -> StoredTokensState:
    state = talk.request.query_state()[-1]
    assert isinstance(state, StoredTokensState)
    return state


def live(talk: Talk) -> int:
    return int(stored(talk).state.data[0])


def propose(talk: Talk, tokens: int) -> int:
    """Propose a number; return the granted number, at which the conversation continues."""
    state = stored(talk)
    state.state = np.array([tokens])
    talk.said = int(state.state.data[0])
    return talk.said


def rows(talk: Talk) -> list[np.ndarray]:
    return [state.state.data for state in talk.request.query_state()]


def test_the_state_is_the_number_of_stored_tokens(talks) -> None:
    talk = talks(**CHUNKED)
    assert live(talk) == 0
    talk.tell(IDS[:70])
    talk.tell([1])
    assert live(talk) == 71
    assert stored(talk).name == "npuw_stored_tokens_state"
    assert stored(talk).state.data.dtype == np.int64
    talk.tell([5], back=30)
    assert live(talk) == 42, "after a rewind"
    talk.reset()
    assert live(talk) == 0


def test_any_proposed_number_is_granted(talks, unchunked) -> None:
    """NPUW grants 64 of 71: complete chunks that prefill computed.

    Source: docs/reference/npuw.md#continuous-prefill.
    """
    talk = talks(**CHUNKED)
    talk.tell(IDS[:70])
    talk.tell([1])
    assert propose(talk, 71) == 71
    assert live(talk) == 71
    ids = [*IDS[:70], 1, *IDS[100:140]]
    assert close(talk.tell(ids[71:]), whole(unchunked, ids))
    assert live(talk) == 111


said = st.lists(st.integers(0, 96), min_size=1, max_size=40)
turn = st.tuples(st.integers(0, 1), st.floats(0, 1), said, st.integers(0, 5))


@settings(max_examples=25, deadline=None)
@given(turns=st.lists(turn, min_size=1, max_size=6), chunk=st.sampled_from([0, 16, 32]))
def test_any_proposals_equal_unchunked_runs(talks, unchunked, turns, chunk) -> None:
    """Two conversations run in turn; each keeps some tokens, reads a prompt, generates greedily."""
    both = [talks(NPUW_LLM_PREFILL_CHUNK_SIZE=chunk) for _ in range(2)]
    told: list[list[int]] = [[], []]
    for who, share, ids, greedy in turns:
        talk = both[who]
        keep = round(share * len(told[who]))
        ids = ids[: 128 - keep] if keep < 128 else ids[:1]
        if keep >= 128:
            continue
        assert propose(talk, keep) == keep
        told[who] = told[who][:keep] + ids
        logits = talk.tell(ids)
        for _ in range(greedy):
            expected = whole(unchunked, told[who])
            assert close(logits, expected)
            token = int(expected.argmax())
            assert int(logits.argmax()) == token
            told[who].append(token)
            logits = talk.tell([token])
        assert close(logits, whole(unchunked, told[who]))
        assert live(talk) == len(told[who])


def inputs(ids: list[int], mask: int, first: int) -> dict[str, np.ndarray]:
    return {
        "input_ids": np.array([ids]),
        "attention_mask": np.ones((1, mask), np.int64),
        "position_ids": np.arange(first, first + len(ids))[None],
    }


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "the whole prompt": (inputs(IDS[:50], 50, 0), "40 tokens are kept.* begin at 40"),
    "too little is kept": (inputs([1, 2], 32, 30), "must begin at 40, not 30"),
    "too much is kept": (inputs([1, 2], 62, 60), "must begin at 40, not 60"),
    "a mask without what is kept": (inputs([1, 2], 2, 40), "mask has 2 positions, not 40 stored"),
    "a hole": (
        inputs([1, 2, 3], 43, 40) | {"position_ids": np.array([[40, 41, 43]])},
        "must be consecutive from 40",
    ),
    "too many": (inputs(IDS[:100], 140, 40), "140 tokens, at most 128"),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_a_rejected_inference_changes_nothing(talks, unchunked, wrong, message) -> None:
    talk = talks(**CHUNKED)
    talk.tell(IDS[:60])
    assert propose(talk, 40) == 40
    before = rows(talk)
    with pytest.raises((TensorError, PromptTooLong), match=message):
        talk.request.infer(wrong)
    assert all(map(np.array_equal, rows(talk), before))
    assert live(talk) == 40, "the grant is still valid"
    ids = [*IDS[:40], 7, 8, 9]
    assert close(talk.tell(ids[40:]), whole(unchunked, ids))


def test_a_proposal_cannot_exceed_the_stored_tokens(talks) -> None:
    talk = talks()
    talk.tell(IDS[:20])
    for count in (21, -1):
        with pytest.raises(StateError, match=f"= {count}: only 20 tokens are stored"):
            propose(talk, count)
    for wrong in (np.array(3), np.array([3], np.int32), np.array([[3]])):
        with pytest.raises(StateError, match=r"is int64 \[1\], not"):
            stored(talk).state = wrong
    with pytest.raises(TensorError, match="the scalar 3 is not a tensor"):
        stored(talk).state = 3  # pyright: ignore[reportAttributeAccessIssue]
    assert live(talk) == 20


def test_a_reset_withdraws_the_proposal(talks, unchunked, tmp_path) -> None:
    talk = talks(**CHUNKED)
    talk.tell(IDS[:20])
    talk.request.save_state(tmp_path / "talk")
    for forget, left in (
        (talk.reset, 0),
        (stored(talk).reset, 0),
        (lambda: talk.request.load_state(tmp_path / "talk"), 20),
    ):
        propose(talk, 3)
        forget()
        assert live(talk) == left
        talk.said = left
        ids = IDS[: talk.said] + IDS[50:80]
        assert close(talk.tell(ids[talk.said :]), whole(unchunked, ids))


def test_zero_tokens_may_be_kept(talks, unchunked) -> None:
    """0 is granted, too: the next tokens are a complete prompt, of one token or several."""
    for ids in ([5], IDS[40:90]):
        talk = talks(**CHUNKED)
        assert propose(talk, 0) == 0, "no token is stored yet"
        talk.tell(IDS[:30])
        assert propose(talk, 0) == 0
        assert close(talk.tell(ids), whole(unchunked, ids))
        assert live(talk) == len(ids)


def test_positions_continue_from_the_first_one(talks, unchunked) -> None:
    """Gemma 3 begins at 1 (docs/reference/npuw.md#starting-and-continuing)."""
    talk = talks(**CHUNKED)
    talk.request.infer(inputs(IDS[:40], 40, 1))
    assert propose(talk, 25) == 25
    ids = IDS[:25] + IDS[60:90]
    found = talk.request.infer(inputs(ids[25:], 55, 26))["logits"][0, -1]
    assert close(found, whole(unchunked, ids, 1))


def test_without_the_option_the_state_is_read_only(talks) -> None:
    """The state always exists, as in NPUW."""
    talk = talks(NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="NO")
    assert stored(talk).name == "npuw_stored_tokens_state"
    assert live(talk) == 0
    talk.tell(IDS[:30])
    assert live(talk) == 30
    for tokens in (30, 10, 0, 99):
        with pytest.raises(StateError, match="NPUW_LLM_ENABLE_CONTINUOUS_PREFILL = YES"):
            propose(talk, tokens)
    talk.tell(IDS[30:31])  # no grant exists, and nothing has changed
    assert live(talk) == 31
    stored(talk).reset()
    assert live(talk) == 0


@pytest.mark.matrix
@pytest.mark.parametrize("pyramid", ["YES", "NO"])
def test_the_model_reports_whether_several_tokens_may_follow(tiny: Path, pyramid: str) -> None:
    options = SMALL | {
        "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "NO",
        "NPUW_LLM_PREFILL_PYRAMID": pyramid,
    }
    compiled = Core().compile_model(tiny, "NPU", options)
    assert compiled.get_property("NPUW_LLM_CONTINUOUS_PREFILL_SUPPORTED") is (pyramid == "YES")
    known = compiled.get_property("SUPPORTED_PROPERTIES")
    assert known["NPUW_LLM_CONTINUOUS_PREFILL_SUPPORTED"] == "RO"
    with pytest.raises(OptionError, match="NPUW_LLM_CONTINUOUS_PREFILL_SUPPORTED"):
        Core().compile_model(tiny, "NPU", {"NPUW_LLM_CONTINUOUS_PREFILL_SUPPORTED": "YES"})


def test_a_conversation_continues_after_all_its_states_were_copied(talks, unchunked) -> None:
    """The count is set last, when the number of stored rows equals it."""
    source, target = talks(**CHUNKED), talks(**CHUNKED)
    source.tell(IDS[:30])
    for state, values in zip(target.request.query_state(), rows(source), strict=True):
        state.state = values
    target.said = 30
    assert close(target.tell(IDS[30:60]), whole(unchunked, IDS[:60]))


TOLD = st.lists(
    st.tuples(st.floats(0, 1), st.lists(st.integers(0, 96), min_size=1, max_size=60)),
    min_size=2,
    max_size=4,
)
"""Turns: the share of the stored tokens that stay, and new tokens."""


@given(TOLD)
@settings(max_examples=6, deadline=None)
def test_several_tokens_continue_anywhere_without_an_option(talks, unchunked, turns) -> None:
    """Positions alone determine the place; the greedy token is that of a complete prompt."""
    talk = talks(NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="NO")
    talk.reset()
    told: list[int] = []
    for share, ids in turns:
        keep = min(round(share * len(told)), 128 - len(ids))
        logits = talk.tell(ids, back=len(told) - keep)
        told = told[:keep] + ids
        expected = whole(unchunked, told)
        assert close(logits, expected)
        assert int(logits.argmax()) == int(expected.argmax())


@pytest.fixture
def faulty() -> FaultyDevice:
    return FaultyDevice(InterpreterDevice(StaticCompiler(), "4000"))


@pytest.fixture
def fragile(tiny: Path, faulty: FaultyDevice) -> Talk:
    """Return a conversation that reads chunks of 16, and is to keep 32 of its 60 tokens."""
    options = {**SMALL, **CHUNKED, "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    compiled = Core(device=faulty).compile_model(tiny, "NPU", options)
    talk = Talk(cast("InferRequest", compiled.create_infer_request()))
    talk.tell(IDS[:60])
    assert propose(talk, 32) == 32
    return talk


def check_it_goes_on(talk: Talk, unchunked: Interpreter) -> None:
    """Check that two of four chunks were read, and that the rest may follow."""
    assert live(talk) == 64
    ids = IDS[:32] + IDS[100:164]
    assert propose(talk, 64) == 64
    assert close(talk.tell(ids[64:]), whole(unchunked, ids))


@pytest.mark.long
def test_a_prompt_that_fails_keeps_the_tokens_read(fragile, faulty, unchunked) -> None:
    faulty.good_runs = faulty.runs + 2
    with pytest.raises(DeviceError, match="LOST"):
        fragile.tell(IDS[100:164])
    faulty.good_runs = 1 << 30
    check_it_goes_on(fragile, unchunked)


@pytest.mark.long
def test_a_cancelled_prompt_keeps_the_tokens_read(fragile, faulty, unchunked) -> None:
    second = faulty.runs + 2

    def cancel(name: str, values: np.ndarray) -> None:
        if faulty.runs == second:
            fragile.request.cancel()

    faulty.spoil = cancel
    with pytest.raises(InferenceCancelled):
        fragile.tell(IDS[100:164])
    faulty.spoil = None
    check_it_goes_on(fragile, unchunked)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_only_tokens_still_stored_are_granted(talks, unchunked, policy) -> None:
    """The cache was full; the first tokens stayed."""
    options = {
        "NPUW_LLM_MAX_PROMPT_LEN": 64,
        "NPUW_LLM_MIN_RESPONSE_LEN": 64,
        "NPUW_LLM_ON_FULL": policy,
        "NPUW_LLM_SINK_TOKENS": 4,
        **CHUNKED,
    }
    talk = talks(**options)
    talk.tell(IDS[:60])
    for token in IDS[60:140]:
        talk.tell([token])
    assert live(talk) == 140
    assert propose(talk, 30) == 4
    ids = IDS[:4] + IDS[200:240]
    assert close(talk.tell(ids[4:]), whole(unchunked, ids))
    assert live(talk) == 44


def test_a_running_request_shows_no_state(fragile, faulty) -> None:
    states = fragile.request.query_state()
    refused: list[str] = []

    def look(name: str, values: np.ndarray) -> None:
        for state in (states[0], states[-1]):
            for act in (lambda s=state: s.state, lambda s=state: set_state(s), state.reset):
                with pytest.raises(RequestBusy):
                    act()
                refused.append(state.name)

    def set_state(state: Any) -> None:
        state.state = np.zeros(1, np.int64)

    faulty.spoil = look
    fragile.tell([1])
    assert refused
