"""Rows of a batch: each continues the row that beam_idx names, as if it were alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.npuw.conftest import Talk

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.errors import CapacityError, DeviceError, StateError, TensorError
from npuw_layer.llm.request.lm_head import LMHead

PROMPT = [5, 9, 13, 7, 21]
LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}


class Batch:
    """A request with an interface of rows, which remembers the tokens of each."""

    def __init__(self, talk: Talk) -> None:
        self.request = talk.request
        self.histories: list[list[int]] = [[]]

    def tell(self, rows: Sequence[Sequence[int]], sources: Sequence[int], back: int = 0) -> Any:
        """Infer rows, each after a source whose last tokens are dropped; return the last logits."""
        past = len(self.histories[0]) - back
        count = len(rows[0])
        logits = self.request.infer(
            {
                "input_ids": np.array(rows, np.int64),
                "attention_mask": np.ones((len(rows), past + count), np.int64),
                "position_ids": np.tile(np.arange(past, past + count), (len(rows), 1)),
                "beam_idx": np.array(sources, np.int32),
            }
        )["logits"]
        before = self.histories if any(self.histories) else [[]] * len(rows)
        self.histories = [
            [*before[source][:past], *row] for source, row in zip(sources, rows, strict=True)
        ]
        return logits[:, -1]


def forked(talk: Talk) -> Batch:
    """Return three rows after a prompt."""
    batch = Batch(talk)
    batch.tell([PROMPT], [0])
    batch.tell([[1], [2], [3]], [0, 0, 0])
    return batch


def alone(talk: Talk, tokens: Sequence[int]) -> np.ndarray:
    """Return the logits of a prompt, then of single tokens."""
    logits = talk.tell(tokens[: len(PROMPT)])
    for token in tokens[len(PROMPT) :]:
        logits = talk.tell([token])
    return logits


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16},
        {"KV_CACHE_PRECISION": "i8"},
        {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": 16},
        {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
        {"NPUW_LLM_SHARED_HEAD": "NO"},
    ],
    ids=["plain", "chunks", "i8 caches", "blocks", "transposed V", "own heads"],
)
def test_forked_and_reordered_rows_equal_conversations_alone(talks, options) -> None:
    batch = forked(talks(**options))
    for rows, sources in (([[4], [5], [6]], [2, 0, 2]), ([[7], [8]], [1, 0]), ([[9]], [1])):
        found = batch.tell(rows, sources)
        expected = [alone(talks(**options), history) for history in batch.histories]
        assert np.array_equal(found, expected)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_any_order_of_rows_is_followed(talks, data: st.DataObject) -> None:
    batch = Batch(talks())
    batch.tell([PROMPT], [0])
    for _ in range(data.draw(st.integers(1, 5))):
        row = st.integers(0, len(batch.histories) - 1)
        sources = data.draw(st.lists(row, min_size=1, max_size=4))
        tokens = data.draw(st.lists(st.integers(0, 96), min_size=4, max_size=4))
        found = batch.tell([[token] for token in tokens[: len(sources)]], sources)
    assert np.array_equal(found, [alone(talks(), history) for history in batch.histories])


def test_rows_of_prompts_equal_prompts_alone(talks) -> None:
    batch = Batch(talks())
    found = batch.tell([PROMPT, PROMPT[::-1]], [0, 1])
    assert np.array_equal(found, [talks().tell(PROMPT), talks().tell(PROMPT[::-1])])


def test_rows_rewind_by_their_positions(talks) -> None:
    batch = forked(talks())
    found = batch.tell([[4], [5], [6]], [1, 1, 0], back=2)
    expected = [[*PROMPT[:-1], token] for token in (4, 5, 6)]
    assert batch.histories == expected
    for logits, tokens in zip(found, expected, strict=True):
        reference = talks().tell(tokens)
        assert np.abs(logits - reference).max() <= 1e-5 * np.abs(reference).max()


@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_a_copy_of_a_full_conversation_continues_like_it(talks, policy: str) -> None:
    options = LENGTHS | {"NPUW_LLM_ON_FULL": policy}
    batch, one = Batch(talks(**options)), talks(**options)
    tokens = np.random.default_rng(3).integers(0, 97, 150).tolist()
    batch.tell([tokens[:60]], [0])
    one.tell(tokens[:60])
    for token in tokens[60:]:
        batch.tell([[token]], [0])
        one.tell([token])
    first, second = batch.tell([[1], [1]], [0, 0])
    assert np.array_equal(first, one.tell([1]))
    assert np.abs(second - first).max() <= 1e-5 * np.abs(first).max()


def test_several_tokens_of_each_row_are_one_step(talks) -> None:
    options = {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}
    batch = Batch(talks(**options))
    batch.tell([PROMPT], [0])
    batch.tell([[1, 2, 3], [4, 5, 6]], [0, 0])
    logits = batch.request.get_tensor("logits").data
    assert logits.shape == (2, 3, 97)
    for row, tokens in enumerate(([1, 2, 3], [4, 5, 6])):
        talk = talks(**options)
        talk.tell(PROMPT)
        talk.tell(tokens)
        assert np.array_equal(logits[row], talk.request.get_tensor("logits").data[0])


def test_the_head_runs_with_a_single_token_of_a_model_of_several(talks, monkeypatch) -> None:
    plain, wide = talks(), talks(NPUW_LLM_MAX_GENERATION_TOKEN_LEN=8)
    for talk in (plain, wide):
        talk.tell(PROMPT)
    monkeypatch.delattr(LMHead, "logits")  # the head on its own, after the host copied its input
    assert wide.tell([1]) == pytest.approx(plain.tell([1]), abs=1e-5)
    assert wide.tell([2, 3]).shape == (97,)


def test_logits_of_all_rows_go_to_the_tensor_set_for_them(talks) -> None:
    batch = Batch(talks())
    batch.tell([PROMPT], [0])
    kept = np.zeros((2, 1, 97), np.float32)
    batch.request.set_tensor("logits", kept)
    found = batch.tell([[1], [2]], [0, 0])
    assert np.array_equal(kept[:, -1], found)
    with pytest.raises(TensorError, match=r"logits will be \[1, 1, 97\], .* is \[2, 1, 97\]"):
        batch.tell([[1]], [0])


def test_rows_may_be_inferred_asynchronously(talks) -> None:
    batch, other = forked(talks()), forked(talks())
    expected = other.tell([[4], [5]], [2, 0])
    batch.request.start_async(
        {
            "input_ids": np.array([[4], [5]]),
            "attention_mask": np.ones((2, 7), np.int64),
            "position_ids": np.full((2, 1), 6),
            "beam_idx": np.array([2, 0], np.int32),
        }
    )
    batch.request.wait()
    assert np.array_equal(batch.request.get_tensor("logits").data[:, -1], expected)


def test_memory_grows_to_the_most_rows_and_is_freed_on_reset(tiny: Path) -> None:
    device = LevelZeroDevice(StaticCompiler(), "4000")
    request = Core(device=device).compile_model(tiny, "NPU", LENGTHS).create_infer_request()
    one, used = request.memory().kv_cache, set[int]()
    for _ in range(3):
        batch = Batch(Talk(request))
        batch.tell([PROMPT], [0])
        for sources in ([0, 0, 0], [2], [0, 0], [1, 0, 1]):
            batch.tell([[1]] * len(sources), sources)
            assert request.memory().kv_cache == 3 * one
        assert request.execution_report()["rows"].startswith("3;")
        before = device.allocated_bytes
        request.reset_state()
        assert request.memory().kv_cache == one
        assert "rows" not in request.execution_report()
        assert device.allocated_bytes <= before - 2 * one
        used.add(device.allocated_bytes)
    assert len(used) == 1


def test_rejected_rows_change_nothing(talks) -> None:
    batch, other = forked(talks()), forked(talks())
    good = {
        "input_ids": np.array([[4], [5]]),
        "attention_mask": np.ones((2, 7), np.int64),
        "position_ids": np.full((2, 1), 6),
        "beam_idx": np.array([2, 0], np.int32),
    }
    for change, message in (
        ({"beam_idx": np.array([0, 3], np.int32)}, r"\[0, 3\], but the last inference had 3 rows"),
        ({"beam_idx": np.array([0, -1], np.int32)}, "use 0 to 2, or call reset_state"),
        ({"beam_idx": np.array([0], np.int32)}, r"int32 \[1\], not int32 \[2\]"),
        ({"beam_idx": np.zeros(2, np.float32)}, r"float32 \[2\], not int32 \[2\]"),
        ({"attention_mask": np.ones((1, 7), np.int64)}, r"2 rows, but attention_mask is \[1, 7\]"),
        ({"input_ids": np.array([[4], [97]])}, "97"),
        ({"position_ids": np.array([[6], [9]])}, "position_ids begin at 9, but 6 tokens"),
    ):
        with pytest.raises(TensorError, match=message):
            batch.request.infer(good | change)
    found = batch.request.infer(good)["logits"][:, -1]
    assert np.array_equal(found, other.tell([[4], [5]], [2, 0]))


def test_rows_without_room_are_rejected_before_any_is_read(talks) -> None:
    batch = Batch(talks(**LENGTHS))
    batch.tell([[1] * 60], [0])
    for _ in range(67):  # 127 rows: the largest variant is full
        batch.tell([[2]], [0])
    with pytest.raises(CapacityError):
        batch.tell([[1], [2]], [0, 0])
    assert len(batch.request._rows.pool) == 1


def test_a_row_that_failed_leaves_rows_in_the_new_order(talks, monkeypatch) -> None:
    batch, other = forked(talks()), forked(talks())
    failing = batch.request._rows.active[0]
    monkeypatch.setattr(failing, "infer", lambda *_: (_ for _ in ()).throw(DeviceError("gone")))
    with pytest.raises(DeviceError, match="gone"):
        batch.tell([[4], [5]], [2, 0])  # row 2 has read its token
    monkeypatch.undo()
    found = batch.tell([[4], [5]], [0, 1])
    assert np.array_equal(found, other.tell([[4], [5]], [2, 0]))


def test_a_file_holds_one_row(talks, tmp_path: Path) -> None:
    batch = forked(talks())
    for act in (batch.request.save_state, batch.request.load_state):
        with pytest.raises(StateError, match="the request has 3 rows, but a file holds one"):
            act(tmp_path / "rows")
    batch.tell([[4]], [2])
    batch.request.save_state(tmp_path / "rows")
    talk = talks()
    talk.request.load_state(tmp_path / "rows")
    talk.said = 7
    assert np.array_equal(talk.tell([5]), batch.tell([[5]], [0])[0])


def test_variables_are_those_of_row_0(talks) -> None:
    batch = forked(talks())
    batch.tell([[4], [5]], [2, 0])
    state = batch.request.query_state()[0].state.data
    talk = talks()
    alone(talk, batch.histories[0])
    assert np.array_equal(state, talk.request.query_state()[0].state.data)
