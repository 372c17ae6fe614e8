"""Invariants of static models that behave like one stateful model, on the NPU in f32."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer import Core
from npuw_layer.backends.protocols import READ_PREFIX
from npuw_layer.errors import CapacityError, ModelError, OptionError, PromptTooLong, TensorError

tokens = st.lists(st.integers(0, 96), min_size=1, max_size=90)
few = settings(max_examples=12, deadline=None)


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max())


@pytest.fixture(scope="module")
def stateful(tiny: Path) -> Interpreter:
    """Return the stateful model: one graph with a growing state."""
    return Interpreter(read_folder(tiny))


def stateful_logits(stateful: Interpreter, ids: list[int]) -> np.ndarray:
    stateful.reset()
    count = len(ids)
    return stateful.run(
        {
            "input_ids": np.array([ids]),
            "attention_mask": np.ones((1, count), np.int64),
            "position_ids": np.arange(count)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
    )["logits"][0, -1]


@few
@given(tokens)
def test_padding_never_changes_a_result(talks, stateful, ids) -> None:
    """Static prefill has 128 tokens for a prompt of any length."""
    assert close(talks().tell(ids), stateful_logits(stateful, ids))


@few
@given(tokens, st.integers(0, 12))
def test_prefill_of_n_then_m_decodes_equals_prefill_of_both(talks, ids, decodes) -> None:
    whole, split = talks(), talks()
    count = max(1, len(ids) - decodes)
    logits = split.tell(ids[:count])
    for token in ids[count:]:
        logits = split.tell([token])
    assert close(logits, whole.tell(ids))


@few
@given(tokens)
def test_a_chunked_prefill_equals_a_whole_one(talks, ids) -> None:
    chunked = talks(NPUW_LLM_PREFILL_CHUNK_SIZE=16)
    assert close(chunked.tell(ids), talks().tell(ids))


@few
@given(tokens, st.integers(0, 96))
def test_stored_rows_do_not_depend_on_how_they_were_read(talks, ids, following) -> None:
    chunked, whole = talks(NPUW_LLM_PREFILL_CHUNK_SIZE=16), talks()
    for talk in (chunked, whole):
        talk.tell(ids)
    states = (talk.request.query_state()[:-1] for talk in (chunked, whole))
    for one, other in zip(*states, strict=True):
        assert one.name == other.name
        assert one.state.shape == (1, 2, len(ids), 8)
        np.testing.assert_allclose(one.state.data, other.state.data, atol=1e-5)
    assert close(chunked.tell([following]), whole.tell([following]))


LADDER = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "72,96",
}


@pytest.mark.long
def test_a_full_variant_hands_over_to_the_next_without_recomputation(talks) -> None:
    """The past of a smaller variant is the beginning of a larger one's."""
    ladder, single = talks(**LADDER), talks(**(LADDER | {"NPUW_LLM_GENERATE_PYRAMID": "NO"}))
    ids = np.random.default_rng(2).integers(0, 97, 120)
    variants: list[str] = []
    for talk in (ladder, single):
        talk.tell(ids[:2])
    for token in ids[2:]:
        logits, expected = ladder.tell([token]), single.tell([token])
        assert close(logits, expected)
        variants.append(ladder.request.execution_report()["KV variant"])
    assert list(dict.fromkeys(variants)) == [
        "72 of 72/96/128",
        "96 of 72/96/128",
        "128 of 72/96/128",
    ]


def test_the_prefix_of_a_variants_buffer_is_the_smaller_variants_buffer(talks) -> None:
    """Each variant reads its past from the same address, with another number of rows."""
    request = talks(**LADDER).request
    bound = []
    for variant in request._conversation.reader.generate._variants:
        program, _ = variant._programs[None]
        states = {
            tensor.name: (program._pointer(index), tensor.shape)
            for index, tensor in enumerate(program._loaded.inputs)
            if tensor.name.startswith(READ_PREFIX)
        }
        bound.append(states)
    for smaller, larger in pairwise(bound):
        assert smaller.keys() == larger.keys()
        for name, (address, (_, rows, *row)) in smaller.items():
            other_address, (_, more_rows, *other_row) = larger[name]
            assert (other_address, other_row) == (address, row)
            assert more_rows > rows


def test_a_long_prompt_begins_with_a_large_variant(talks) -> None:
    talk = talks(**LADDER)
    talk.tell([1] * 40)
    assert talk.request.execution_report()["KV variant"] == "128 of 72/96/128"
    talk.reset()
    talk.tell([1] * 5)
    assert talk.request.execution_report()["KV variant"] == "72 of 72/96/128"


@few
@given(tokens, st.integers(1, 20), tokens)
def test_a_rewind_forgets_exactly_the_later_tokens(talks, ids, back, other) -> None:
    back = min(back, len(ids) - 1)
    rewound, fresh = talks(), talks()
    rewound.tell(ids)
    other = other[: 128 - len(ids) + back]
    assert close(rewound.tell(other, back=back), fresh.tell(ids[: len(ids) - back] + other))


def test_a_reset_starts_again_and_repeats_exactly(talks) -> None:
    talk = talks()
    first = talk.tell([1, 2, 3])
    talk.tell([4])
    talk.reset()
    assert np.array_equal(talk.tell([1, 2, 3]), first)


@pytest.mark.long
@pytest.mark.parametrize("chunk", [128, 4])
def test_forgotten_rows_are_never_read(talks, chunk) -> None:
    """Infinities in masked rows would become NaNs, for any length of the past."""
    options = {"NPUW_LLM_PREFILL_CHUNK_SIZE": chunk, **LADDER}
    spoiled, fresh = talks(**options), talks(**options)
    cache = spoiled.request._conversation.cache
    first = fresh.tell([1, 2, 3, 4, 5])

    spoiled.tell([6] * 60)
    for _ in range(40):
        spoiled.tell([6])
    for name in cache.names:
        cache.read(name)[...] = np.inf
    spoiled.reset()
    assert np.array_equal(spoiled.tell([1, 2, 3, 4, 5]), first)
    # The smallest variant reads fewer rows than were stored; a larger one reads the rest.
    for _ in range(80):
        assert np.array_equal(spoiled.tell([7]), fresh.tell([7]))

    for name in cache.names:
        cache.read(name)[8:] = np.inf
    assert np.array_equal(spoiled.tell([9], back=77), fresh.tell([9], back=77))


def test_resetting_a_variable_resets_the_cache(talks) -> None:
    talk = talks()
    first = talk.tell([1, 2, 3])
    talk.request.query_state()[0].reset()
    talk.said = 0
    assert np.array_equal(talk.tell([1, 2, 3]), first)


def test_two_requests_run_concurrently_without_disturbing_each_other(talks) -> None:
    ids = np.random.default_rng(0).integers(0, 97, (2, 30))
    expected = []
    for row in ids:
        talk = talks()
        expected.append([talk.tell([token]) for token in row])
    found: list[list[np.ndarray]] = [[], []]

    def run(number: int) -> None:
        talk = talks()
        found[number] = [talk.tell([token]) for token in ids[number]]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(found, expected, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_capacity_equals_npuws(talks) -> None:
    """MAX_PROMPT 100, MIN_RESPONSE 10: a prompt of 50 allows 142 new tokens."""
    talk = talks(NPUW_LLM_MAX_PROMPT_LEN=100, NPUW_LLM_MIN_RESPONSE_LEN=10)
    talk.tell([1] * 50)
    for _ in range(141):  # the first new token came with the prompt
        talk.tell([2])
    with pytest.raises(CapacityError, match="KV-Cache is full: 191 tokens are stored"):
        talk.tell([2])
    assert talk.request.get_tensor("logits").shape == (1, 1, 97)


def test_the_error_for_a_long_prompt_states_the_limit_and_the_request_stays_usable(talks) -> None:
    talk = talks()
    with pytest.raises(PromptTooLong, match="has 129 tokens, at most 128 are possible"):
        talk.tell([1] * 129)
    talk.reset()
    talk.tell([1] * 128)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_ids": np.zeros((1, 3), np.float32)}, "input_ids is float32"),
        ({"input_ids": np.zeros((2, 3), np.int64)}, "missing: beam_idx, which 2 rows"),
        ({"position_ids": np.zeros((1, 2), np.int64)}, "has 3 tokens, but position_ids has 2"),
        ({"attention_mask": np.ones((1, 9), np.int64)}, "attention_mask has 9 positions"),
        ({"input_ids": np.zeros((1, 0), np.int64)}, "no new tokens: input_ids"),
    ],
)
def test_wrong_inputs_are_rejected(talks, change, message) -> None:
    inputs = {
        "input_ids": np.ones((1, 3), np.int64),
        "attention_mask": np.ones((1, 3), np.int64),
        "position_ids": np.arange(3)[None],
    }
    with pytest.raises(TensorError, match=message):
        talks().request.infer(inputs | change)


def test_inputs_may_be_set_one_by_one_and_run_asynchronously(talks) -> None:
    expected = talks().tell([1, 2, 3])
    request = talks().request
    request.set_tensor("input_ids", np.array([[1, 2, 3]]))
    request.set_tensor("attention_mask", np.ones((1, 3), np.int64))
    request.set_tensor("position_ids", np.arange(3)[None])
    request.start_async()
    request.wait()
    assert np.array_equal(request.get_tensor("logits").data[0, -1], expected)
    with pytest.raises(TensorError, match="logits is f32"):
        request.set_tensor("logits", np.zeros(3))


def test_paths_and_devices_without_a_model_are_rejected(tmp_path: Path, tiny: Path) -> None:
    with pytest.raises(ModelError, match="no such file or folder"):
        Core().compile_model(tmp_path / "none", "NPU", {})
    with pytest.raises(ModelError, match="xx: File name too long"):
        Core().compile_model("x" * 300, "NPU", {})
    with pytest.raises(ModelError, match=r"not a model; pass an openvino_model\.xml"):
        Core().compile_model(tmp_path, "NPU", {})
    with pytest.raises(OptionError, match="this runtime has only NPU"):
        Core().compile_model(tiny, "GPU", {})


@pytest.mark.parametrize("begin", [6, 20, -1])
def test_positions_after_a_gap_are_rejected_and_change_nothing(talks, begin: int) -> None:
    """NPUW warns, and reads rows that were never written."""
    talk, other = talks(), talks()
    talk.tell([1, 2, 3, 4, 5])
    other.tell([1, 2, 3, 4, 5])
    beyond = {
        "input_ids": np.array([[7]]),
        "attention_mask": np.ones((1, max(begin, 5) + 1), np.int64),
        "position_ids": np.array([[begin]]),
    }
    with pytest.raises(TensorError, match=f"position_ids begin at {begin}, but 5 tokens are"):
        talk.request.infer(beyond)
    assert np.array_equal(talk.tell([7]), other.tell([7]))
