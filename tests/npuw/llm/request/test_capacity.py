"""Full caches: an error, a shorter history, or a sliding window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer.errors import CapacityError, OptionError, PromptTooLong, TensorError, TooManyTokens

SHORT = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
TOTAL = 128
few = settings(max_examples=4, deadline=None)


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max())


@pytest.fixture(scope="module")
def stateful(tiny: Path) -> Interpreter:
    """Return the stateful model: one graph with a growing state."""
    return Interpreter(read_folder(tiny))


def tell(stateful: Interpreter, ids: list[int], mask: np.ndarray, first: int) -> np.ndarray:
    """Return the last token's logits of the stateful model after more tokens."""
    return stateful.run(
        {
            "input_ids": np.array([ids]),
            "attention_mask": mask[None],
            "position_ids": np.arange(first, first + len(ids))[None],
            "beam_idx": np.zeros(1, np.int32),
        }
    )["logits"][0, -1]


@pytest.mark.long
def test_the_error_names_the_options_to_raise(talks) -> None:
    talk = talks(**SHORT)
    talk.tell([1] * 64)
    for _ in range(63):
        talk.tell([2])
    with pytest.raises(CapacityError, match="NPUW_LLM_MAX_PROMPT_LEN or NPUW_LLM_MIN_RESPONSE_LEN"):
        talk.tell([2])


@pytest.mark.long
@few
@given(st.integers(1, 200), st.integers(0, 6), st.integers(1, 40))
@example(1, 4, 3)
@example(64, 4, 3)
@example(200, 4, 3)
def test_a_sliding_window_attends_to_sinks_and_the_newest_tokens(
    talks, stateful, prompt, sinks, more
) -> None:
    """The reference is the stateful model with a mask that hides all other tokens.

    Prompts may be longer than prefill reads, and than the window.
    """
    talk = talks(**SHORT, NPUW_LLM_ON_FULL="SLIDE", NPUW_LLM_SINK_TOKENS=sinks)
    ids = np.random.default_rng(prompt).integers(0, 97, max(TOTAL, prompt) + more).tolist()
    window = TOTAL - 1
    stateful.reset()
    for at in range(len(ids)):
        mask = np.ones(at + 1, np.int64)
        mask[sinks : max(at - window + sinks, sinks)] = 0
        expected = tell(stateful, [ids[at]], mask, at)
        if at >= prompt - 1:
            logits = talk.tell(ids[:prompt] if at == prompt - 1 else [ids[at]])
            assert close(logits, expected), at


@pytest.mark.long
def test_a_window_that_has_slid_can_rewind_to_its_oldest_token(talks) -> None:
    slid, again = (talks(**SHORT, NPUW_LLM_ON_FULL="SLIDE") for _ in range(2))
    ids = np.random.default_rng(1).integers(0, 97, 150).tolist()
    for talk in (slid, again):
        talk.tell(ids[:10])
    for token in ids[10:140]:
        slid.tell([token])
        again.tell([token])
    slid.tell([1])
    slid.tell([2])
    # The rows replaced by the two tokens are lost; the window is smaller until it has grown again.
    assert slid.tell([5], back=2).shape == again.tell([5]).shape
    assert len(slid.request.query_state()[0].state.data[0, 0]) == TOTAL - 1 - 1
    before, said = len(slid.request.query_state()[0].state.data[0, 0]), slid.said
    with pytest.raises(TensorError, match="was replaced by a newer one"):
        slid.tell([5], back=135)
    assert len(slid.request.query_state()[0].state.data[0, 0]) == before, "nothing is forgotten"
    slid.said = said
    slid.tell([6])


def test_a_prompt_of_any_length_is_as_its_tokens_one_by_one(talks) -> None:
    """The window is a token shorter than the longest prompt, as no room is left for a response."""
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 0}
    whole, single = (talks(**options, NPUW_LLM_ON_FULL="SLIDE") for _ in range(2))
    ids = np.random.default_rng(3).integers(0, 97, 90).tolist()
    for token in ids:
        expected = single.tell([token])
    assert close(whole.tell(ids), expected)
    assert close(whole.tell([3]), single.tell([3])), "and the conversation continues"


@pytest.mark.long
@few
@given(st.integers(2, 64), st.integers(1, 90))
def test_a_truncated_history_equals_a_new_conversation(talks, prompt, more) -> None:
    """The rest is read like a new conversation after the middle was dropped."""
    talk = talks(**SHORT, NPUW_LLM_ON_FULL="TRUNCATE")
    ids = np.random.default_rng(more).integers(0, 97, prompt + 127 - prompt + more).tolist()
    talk.tell(ids[:prompt])
    kept = ids[:prompt]
    for token in ids[prompt:]:
        if len(kept) == TOTAL - 1:
            kept = kept[:4] + kept[-28:]
        kept.append(token)
        logits = talk.tell([token])
    fresh = talks(**SHORT)
    head, tail = kept[:32], kept[32:]
    expected = fresh.tell(head)
    for token in tail:
        expected = fresh.tell([token])
    assert close(logits, expected)


def test_a_prompt_that_is_too_long_loses_its_middle(talks) -> None:
    ids = np.random.default_rng(9).integers(0, 97, 100).tolist()
    cut, fresh = talks(**SHORT, NPUW_LLM_ON_FULL="TRUNCATE"), talks(**SHORT)
    assert close(cut.tell(ids), fresh.tell(ids[:4] + ids[-60:]))
    assert close(cut.tell([3]), fresh.tell([3])), "and the conversation continues"
    assert close(cut.tell([8], back=1), fresh.tell([8], back=1)), "and back"
    with pytest.raises(TensorError, match="tokens 4 to 39 were dropped"):
        cut.tell([1], back=91)
    assert close(cut.tell(ids[:3], back=cut.said), fresh.tell(ids[:3], back=fresh.said))
    with pytest.raises(PromptTooLong, match="at most 64"):
        talks(**SHORT).tell(ids)


def test_a_chat_continues_when_its_next_turn_does_not_fit(talks) -> None:
    ids = np.random.default_rng(9).integers(0, 97, 100).tolist()
    talk, fresh = talks(**SHORT, NPUW_LLM_ON_FULL="TRUNCATE"), talks(**SHORT)
    talk.tell(ids[:50])
    found = talk.tell(ids[50:90])
    assert close(found, fresh.tell(ids[:4] + ids[30:50] + ids[50:90]))


@pytest.mark.matrix
@pytest.mark.parametrize("step", [59, 60, 64])
def test_steps_of_any_width_truncate_the_history_equally(talks, step) -> None:
    """Half a prompt is kept for any number of new tokens."""
    wide = SHORT | {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 64}
    ids = np.random.default_rng(step).integers(0, 97, 64 + 3 * step).tolist()
    talk, fresh = talks(**wide, NPUW_LLM_ON_FULL="TRUNCATE"), talks(**wide)
    kept = ids[:64]
    talk.tell(kept)
    for begin in range(64, len(ids), step):
        new = ids[begin : begin + step]
        fresh.reset()
        fresh.tell(kept[:4] + kept[-28:])
        assert close(talk.tell(new), fresh.tell(new))
        kept = kept[:4] + kept[-28:] + new


@pytest.mark.long
@pytest.mark.parametrize("width", [1, 8])
def test_later_turns_slide_the_window_too(talks, width) -> None:
    """Prefill reads as many tokens as it has room for, and steps read the others."""
    options = SHORT | {"NPUW_LLM_ON_FULL": "SLIDE", "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": width}
    talk, single = talks(**options), talks(**options)
    ids = np.random.default_rng(7).integers(0, 97, 300).tolist()
    for each in (talk, single):
        each.tell(ids[:50])
    for count in (20, 90, 2, 10):
        turn = ids[talk.said : talk.said + count]
        room = max(64 - talk.said, 0)
        found = talk.tell(turn)
        for piece in (turn[:room], *(turn[at : at + width] for at in range(room, count, width))):
            expected = single.tell(piece) if piece else None
        assert close(found, expected)


@pytest.mark.matrix
@pytest.mark.parametrize("on_full", ["SLIDE", "TRUNCATE"])
def test_sinks_must_leave_room_for_newer_tokens(talks, on_full) -> None:
    talks(**SHORT, NPUW_LLM_ON_FULL=on_full, NPUW_LLM_SINK_TOKENS=16)
    with pytest.raises(OptionError, match=r"SINK_TOKENS = 17: sink tokens leave .* at most 16, or"):
        talks(**SHORT, NPUW_LLM_ON_FULL=on_full, NPUW_LLM_SINK_TOKENS=17)
    wide = {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 120, "NPUW_LLM_SINK_TOKENS": 8}
    with pytest.raises(OptionError, match="NPUW_LLM_SINK_TOKENS = 8: sink tokens leave"):
        talks(**SHORT, **wide, NPUW_LLM_ON_FULL=on_full)


def test_without_models_that_resume_a_step_must_take_all_tokens(talks) -> None:
    """NPUW's rule, with NPUW's remedy and ours."""
    ids = [1, 2, 3, 4, 5]
    whole = talks(**SHORT).tell(ids)
    single = {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "NO", "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    strict = talks(**SHORT, **single)
    strict.tell(ids[:2])
    with pytest.raises(TooManyTokens, match="at most 1; raise NPUW_LLM_MAX_GENERATION_TOKEN_LEN"):
        strict.tell(ids[2:])
    assert close(strict.tell(ids, back=2), whole), "at the first position it is a new prompt"
    wide = talks(**SHORT, **single, NPUW_LLM_MAX_GENERATION_TOKEN_LEN=3)
    wide.tell(ids[:2])
    found = wide.request.infer(
        {
            "input_ids": np.array([ids[2:]]),
            "attention_mask": np.ones((1, 5), np.int64),
            "position_ids": np.arange(2, 5)[None],
        }
    )["logits"]
    assert found.shape == (1, 3, 97), "logits of all candidates"
    assert close(found[0, -1], whole)
    wide.said += 3
    one_by_one = talks(**SHORT)
    one_by_one.tell(ids[:2])
    for row, token in zip(found[0], ids[2:], strict=True):
        assert close(row, one_by_one.tell([token]))
    with pytest.raises(TooManyTokens, match="at most 8"):
        wide.tell([1] * 9)
