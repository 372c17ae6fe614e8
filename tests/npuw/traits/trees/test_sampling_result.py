"""The variable that accepts candidates: values, and rejections."""

from __future__ import annotations

import numpy as np
import pytest

from npuw_layer.errors import StateError

from .conftest import SAMPLING, Talk, Tree, result

TREE = Tree([-1, 0, 0, 1, 2])


@pytest.fixture
def told(begin) -> Talk:
    """Return a conversation whose last step had five candidates."""
    talk = begin()
    talk.tell(range(20, 50))
    talk.tell(range(60, 65), tree=TREE)
    return talk


def test_the_variable_has_npuws_size_and_is_zero_at_first(told) -> None:
    assert told.sampling.state.shape == (514,)
    assert told.sampling.state.data.dtype == np.int64
    assert not told.sampling.state.data.any()


def test_the_value_is_read_back_until_the_next_inference(told) -> None:
    state = told.sampling.state.data
    state[:7] = [5, 3, 1, 0, 1, 0, 1]  # all elements, as in openvino_genai
    told.sampling.state = state
    assert np.array_equal(told.sampling.state.data, state)
    assert told.rows[0].shape[2] == 33
    told.said -= 2
    told.tell([7])
    assert not told.sampling.state.data.any()


def test_a_reset_of_the_variable_keeps_the_rows(told) -> None:
    told.accept([0, 1], of=5)
    told.sampling.reset()
    assert not told.sampling.state.data.any()
    assert told.rows[0].shape[2] == 32


def test_zeros_have_no_effect(told) -> None:
    told.sampling.state = np.zeros(514, np.int64)
    assert told.rows[0].shape[2] == 35
    told.accept([0, 2], of=5)
    assert told.rows[0].shape[2] == 32


def test_candidates_beyond_the_stated_number_are_not_accepted(told) -> None:
    told.sampling.state = result([0, 2], of=3)
    assert told.rows[0].shape[2] == 32


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([5, 3, 1, 1, 0, 0, 0], "states that 3 candidates were accepted, but marks 2"),
        ([5, 6, 1, 1, 1, 1, 1], "states that 6 of 5 candidates were accepted"),
        ([5, 0, 0, 0, 0, 0, 0], "states that 0 of 5 candidates were accepted"),
        ([5, -1, 1, 0, 0, 0, 0], "states that -1 of 5 candidates were accepted"),
        ([5, 2, 0, 1, 0, 1, 0], "does not accept the first candidate, the root"),
        ([5, 2, 2, 0, 0, 0, 0], "not 1 for each accepted one, else 0"),
        ([5, 2, 1, -1, 1, 1, 0], "not 1 for each accepted one, else 0"),
        ([6, 2, 1, 1, 0, 0, 0, 0], "states 6 candidates, but the last inference had 5"),
        ([5, 2, 1, 1, 0, 0], "states 5 candidates, but has room for 4"),
        ([-5, 2, 1, 1, 0, 0, 0], "states -5 candidates"),
        ([1 << 40, 2, 1, 1, 0, 0, 0], "states 1099511627776 candidates"),
        ([5, 2, 1, 0, 0, 1, 0], "accepts candidate 3, which attends to the rejected candidate 1"),
        ([5, 3, 1, 1, 1, 0, 0], "candidate 2, which does not attend to the accepted candidate 1"),
    ],
)
def test_contradictions_are_rejected(told, value, problem) -> None:
    before = told.rows
    with pytest.raises(StateError, match=f"{SAMPLING}.*{problem}"):
        told.sampling.state = np.array(value)
    assert all(map(np.array_equal, told.rows, before))
    assert not told.sampling.state.data.any()
    told.accept([0, 2, 4], of=5)  # a correct value is still accepted
    assert told.rows[0].shape[2] == 33


@pytest.mark.parametrize(
    "value",
    [np.zeros(1, np.int64), np.zeros(515, np.int64), np.zeros((1, 9), np.int64), np.zeros(9)],
)
def test_values_of_other_types_and_shapes_are_rejected(told, value) -> None:
    with pytest.raises(StateError, match=r"is int64 \[2 to 514\], not"):
        told.sampling.state = value


def test_the_variable_is_set_once_after_each_inference(told) -> None:
    told.accept([0, 1], of=5)
    with pytest.raises(StateError, match="there are no candidates; set the state once"):
        told.accept([0, 1], of=5)


def test_a_prompt_has_no_candidates(begin) -> None:
    talk = begin()
    with pytest.raises(StateError, match="there are no candidates"):
        talk.accept([0], of=1)
    talk.tell(range(20, 50))
    with pytest.raises(StateError, match="there are no candidates"):
        talk.accept([0], of=1)


def test_a_new_conversation_has_no_candidates(told) -> None:
    told.request.reset_state()
    with pytest.raises(StateError, match="there are no candidates"):
        told.accept([0, 1], of=5)


def test_a_rejected_inference_keeps_the_candidates(told) -> None:
    told.said += 3
    with pytest.raises(RuntimeError, match="35 tokens are stored"):
        told.tell([7])
    told.said -= 3
    told.accept([0, 2, 4], of=5)
    assert told.rows[0].shape[2] == 33


def test_positions_after_rejected_candidates_are_rejected(told) -> None:
    told.accept([0, 2, 4], of=5)
    told.said = 35
    with pytest.raises(RuntimeError, match="position_ids begin at 35, but 33 tokens are stored"):
        told.tell([7])


def test_the_token_history_is_the_accepted_path(told) -> None:
    """Rereading and saving use the accepted path."""
    told.accept([0, 2, 4], of=5)
    assert told.request._conversation.history.ids == [*range(20, 50), 60, 62, 64]


def test_of_a_chain_only_the_first_tokens_can_be_accepted(begin) -> None:
    talk = begin()
    talk.tell(range(20, 50))
    talk.tell(range(60, 65))
    with pytest.raises(StateError, match="candidate 2, which attends to the rejected candidate 1"):
        talk.accept([0, 2], of=5)
    talk.accept([0, 1, 2], of=5)
    assert talk.rows[0].shape[2] == 33


def test_an_accepted_path_withdraws_a_proposal(begin) -> None:
    talk = begin(NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="YES")
    talk.tell(range(20, 50))
    talk.tell(range(60, 65), tree=TREE)
    proposal = talk.request.query_state()[-2]
    proposal.state = np.array([34])
    talk.accept([0, 2], of=5)
    assert proposal.state.data.tolist() == [32]
    talk.tell([7])
