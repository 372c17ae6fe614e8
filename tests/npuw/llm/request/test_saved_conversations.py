"""A conversation is saved to a file, or set row by row, and continues unchanged."""

from __future__ import annotations

import json
import os
import random
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.forged_state import with_fitting_digest

from npuw_layer.errors import InferenceCancelled, NpuwFault, RequestBusy, StateError

IDS = np.random.default_rng(7).integers(0, 97, 150).tolist()


@pytest.fixture
def saved(talks, tmp_path: Path) -> Path:
    """Save forty tokens."""
    talk = talks()
    talk.tell(IDS[:40])
    talk.request.save_state(tmp_path / "talk.npuw")
    return tmp_path / "talk.npuw"


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"KV_CACHE_PRECISION": "i8"},
        {"KV_CACHE_PRECISION": "f8e5m2"},
        {"KV_CACHE_PRECISION": "f16"},
        {"KV_CACHE_PRECISION": "bf16"},
        {"INFERENCE_PRECISION_HINT": "bf16"},
    ],
    ids=["f32", "i8", "f8e5m2", "f16 caches", "bf16 caches", "bf16"],
)
def test_a_restored_conversation_continues_bit_by_bit(talks, tmp_path, options) -> None:
    talk, other = talks(**options), talks(**options)
    talk.tell(IDS[:40])
    talk.tell([5])
    talk.request.save_state(tmp_path / "talk")
    other.tell(IDS[50:80])
    other.request.load_state(tmp_path / "talk")
    other.said = 41
    for token in (1, 2, 3):
        assert np.array_equal(other.tell([token]), talk.tell([token]))
    assert np.array_equal(other.tell([9], back=30), talk.tell([9], back=30)), "and back"


@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_a_full_conversation_is_restored_unchanged(talks, tmp_path, policy) -> None:
    options = {
        "NPUW_LLM_MAX_PROMPT_LEN": 64,
        "NPUW_LLM_MIN_RESPONSE_LEN": 64,
        "NPUW_LLM_ON_FULL": policy,
    }
    talk, other = talks(**options), talks(**options)
    talk.tell(IDS[:60])
    for token in IDS[60:140]:
        talk.tell([token])
    talk.request.save_state(tmp_path / "talk")
    other.request.load_state(tmp_path / "talk")
    other.said = talk.said
    for token in IDS[:20]:
        found, expected = other.tell([token]), talk.tell([token])
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_the_tokens_left_after_sliding_are_read_again_where_caches_do_not_slide(
    talks, tmp_path
) -> None:
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
    talk = talks(**options, NPUW_LLM_ON_FULL="SLIDE")
    talk.tell(IDS[:60])
    for token in IDS[60:129]:
        talk.tell([token])
    talk.tell([1], back=talk.said - 8)
    talk.request.save_state(tmp_path / "talk")
    other, fresh = (talks(**options, NPUW_LLM_ON_FULL="TRUNCATE") for _ in range(2))
    other.request.load_state(tmp_path / "talk")
    other.said = talk.said
    found, expected = other.tell([2, 3]), fresh.tell([*IDS[:8], 1, 2, 3])
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_a_conversation_from_any_first_position_is_saved(talks, tmp_path) -> None:
    """The caller may choose any positions if no RoPE tables exist."""
    talk, other = (talks(NPUW_LLM_CACHE_ROPE="NO") for _ in range(2))
    first = 1 << 40
    inputs = {
        "input_ids": np.array([IDS[:8]]),
        "attention_mask": np.ones((1, 8), np.int64),
        "position_ids": np.arange(first, first + 8)[None],
    }
    talk.request.infer(inputs)
    talk.request.save_state(tmp_path / "talk")
    other.request.load_state(tmp_path / "talk")
    assert other.request._conversation.history.first_position == first


def test_another_models_conversation_is_rejected(talks, saved) -> None:
    with pytest.raises(StateError, match="with another model, or with other options"):
        talks(INFERENCE_PRECISION_HINT="f16").request.load_state(saved)


def test_a_conversation_that_does_not_fit_is_rejected(talks, tmp_path) -> None:
    long = talks(NPUW_LLM_MAX_PROMPT_LEN=192)
    long.tell(IDS[:150])
    long.request.save_state(tmp_path / "talk")
    small = talks(NPUW_LLM_MAX_PROMPT_LEN=64)
    small.tell([1, 2])
    with pytest.raises(StateError, match="150 tokens, but there is room for 128"):
        small.request.load_state(tmp_path / "talk")
    fresh = talks(NPUW_LLM_MAX_PROMPT_LEN=64)
    fresh.tell([1, 2])
    assert np.array_equal(small.tell([3]), fresh.tell([3])), "the conversation is unchanged"


def test_the_error_for_an_unreadable_or_unwritable_file_names_it(talks, tmp_path) -> None:
    request = talks().request
    with pytest.raises(NpuwFault, match="none: No such file"):
        request.load_state(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NpuwFault, match="pipe: not a regular file"):
        request.load_state(tmp_path / "pipe")  # it does not wait for a writer
    with pytest.raises(NpuwFault, match="nowhere/talk: No such file"):
        request.save_state(tmp_path / "nowhere" / "talk")
    with pytest.raises(NpuwFault, match="pipe: not a regular file"):
        request.save_state(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo(), "a pipe is never replaced"
    for call in (request.load_state, request.save_state):
        with pytest.raises(NpuwFault, match="not a file name"):
            call(tmp_path / "talk\0")


def test_saving_preserves_permissions_and_links(saved, talks) -> None:
    link = saved.with_name("link")
    link.symlink_to(saved)
    saved.chmod(0o600)
    talk, other = talks(), talks()
    talk.tell(IDS[:20])
    talk.request.save_state(link)
    assert link.is_symlink()
    assert saved.stat().st_mode & 0o777 == 0o600
    other.request.load_state(saved)
    other.said = 20
    assert np.array_equal(other.tell([1]), talk.tell([1]))


def test_damaged_files_give_typed_errors_and_change_nothing(talks, saved) -> None:
    """The header is damaged, as bytes and as JSON."""
    talk = talks()
    talk.tell([1, 2])
    state = [each.state.data.copy() for each in talk.request.query_state()]
    content, draw = saved.read_bytes(), random.Random(3)
    length = int.from_bytes(content[:8], "little")
    refused = 0
    for _ in range(400):
        damaged = bytearray(content)
        damaged[draw.randrange(8 + length)] = draw.randrange(256)
        if draw.random() < 0.3:
            del damaged[draw.randrange(len(damaged)) :]
        saved.write_bytes(damaged)
        try:
            talk.request.load_state(saved)
        except StateError:
            refused += 1
            found = [each.state.data for each in talk.request.query_state()]
            assert all(map(np.array_equal, found, state))
        else:
            talk.reset()
            talk.tell([1, 2])
    assert refused > 300


def test_a_flipped_bit_of_a_row_and_appended_bytes_are_found(talks, saved) -> None:
    talk = talks()
    talk.tell([1, 2])
    content, draw = saved.read_bytes(), random.Random(5)
    begin = 8 + int.from_bytes(content[:8], "little")
    for change in [*(draw.randrange(begin, len(content)) for _ in range(60)), None]:
        damaged = bytearray(content)
        if change is None:
            damaged += b"\0"
        else:
            damaged[change] ^= 1 << draw.randrange(8)
        saved.write_bytes(damaged)
        with pytest.raises(StateError, match=r"talk\.npuw: .*the file is damaged"):
            talk.request.load_state(saved)
    assert talk.tell([3]).any(), "the conversation continues"


def test_the_error_for_an_older_version_states_the_remedy(talks, saved) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content.replace(b'"version": "2"', b'"version": "1"'))
    with pytest.raises(StateError, match="version '1', not '2'; save the conversation again"):
        talks().request.load_state(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"numbers": [3, 2, 1]}, "do not fit"),
        ({"numbers": [-1]}, "greater than or equal to 0|validation error"),
        ({"ids": [1 << 40]}, "validation error"),
        ({"sinks": 100}, "do not fit"),
        ({"more": 1}, "validation error"),
    ],
)
def test_forged_metadata_is_rejected(talks, saved, change, message) -> None:
    content = saved.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    said = json.loads(header["__metadata__"]["conversation"]) | change
    header["__metadata__"]["conversation"] = json.dumps(said)
    text = json.dumps(header).encode()
    forged = len(text).to_bytes(8, "little") + text + content[8 + length :]
    saved.write_bytes(with_fitting_digest(forged))
    with pytest.raises(StateError, match=message):
        talks().request.load_state(saved)


def test_states_can_be_set_one_by_one(talks) -> None:
    source, target = talks(), talks()
    source.tell(IDS[:30])
    states = {each.name: each.state for each in source.request.query_state()}
    for each in target.request.query_state():
        each.state = states[each.name]
    target.said = 30
    assert np.array_equal(target.tell([4]), source.tell([4]))
    for each in target.request.query_state():
        each.state = np.zeros_like(each.state.data)
    assert not any(each.state.data.any() for each in target.request.query_state())


def test_states_that_do_not_fit_are_rejected(talks) -> None:
    talk = talks()
    talk.tell([1, 2, 3])
    state = talk.request.query_state()[0]
    for wrong in (np.zeros((1, 2, 3, 9), np.float32), np.zeros((1, 2, 3, 8), np.float64)):
        with pytest.raises(StateError, match=r"is float32 \[1, 2, tokens, 8\]"):
            state.state = wrong
    with pytest.raises(StateError, match="4 tokens, but 3 are stored"):
        state.state = np.zeros((1, 2, 4, 8), np.float32)


def test_unknown_tokens_cannot_be_read_again(talks) -> None:
    options = {
        "NPUW_LLM_MAX_PROMPT_LEN": 64,
        "NPUW_LLM_MIN_RESPONSE_LEN": 64,
        "NPUW_LLM_ON_FULL": "TRUNCATE",
    }
    talk = talks(**options)
    for each in talk.request.query_state()[:-1]:
        each.state = np.zeros((1, 2, 127, 8), np.float32)
    talk.said = 127
    with pytest.raises(StateError, match="set by set_state are unknown and cannot be read again"):
        talk.tell([1])


def test_a_running_request_rejects_all_calls(talks, tmp_path, monkeypatch) -> None:
    talk, go_on = talks(), threading.Event()
    infer = talk.request._conversation.infer
    monkeypatch.setattr(
        talk.request._conversation, "infer", lambda *given: (go_on.wait(60), infer(*given))[1]
    )
    inputs = {
        "input_ids": np.array([IDS[:10]]),
        "attention_mask": np.ones((1, 10), np.int64),
        "position_ids": np.arange(10)[None],
    }
    done: list[str] = []
    talk.request.set_callback(done.append, "called")
    talk.request.start_async(inputs)
    for call in (
        lambda: talk.request.save_state(tmp_path / "talk"),
        lambda: talk.request.reset_state(),
        lambda: talk.request.query_state(),
        lambda: talk.request.infer(inputs),
    ):
        with pytest.raises(RequestBusy):
            call()
    assert not talk.request.wait_for(1)
    go_on.set()
    talk.request.wait()
    assert done == ["called"]
    assert talk.request.wait_for(1)


def test_a_cancelled_prompt_keeps_the_tokens_read(talks, monkeypatch) -> None:
    """The prompt is cancelled before its second chunk; positions determine the continuation."""
    talk = talks(NPUW_LLM_PREFILL_CHUNK_SIZE=16)
    request, conversation = talk.request, talk.request._conversation
    store = conversation.cache.rows.append

    def append(count: int) -> None:
        store(count)
        request.cancel()

    monkeypatch.setattr(conversation.cache.rows, "append", append)
    with pytest.raises(InferenceCancelled):
        talk.tell(IDS[:40])
    monkeypatch.undo()
    assert conversation.cache.rows.tokens == 16
    talk.said = 16
    fresh = talks(NPUW_LLM_PREFILL_CHUNK_SIZE=16)
    assert np.array_equal(talk.tell(IDS[16:40]), fresh.tell(IDS[:40]))
