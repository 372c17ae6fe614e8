"""States of fixed size as OpenVINO variables, and options that they rule out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS
from tests.npuw.conftest import Talk
from tests.npuw.traits.linear_states.conftest import CHUNKED, PROMPT, distance

from npuw_layer import Core
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import ModelError, StateError


def states_of(talk: Talk) -> dict[str, Any]:
    states = talk.request.query_state()
    return {one.name: one for one in states if one.name != "npuw_stored_tokens_state"}


def test_states_equal_openvinos(begin: Any, said: Any) -> None:
    expected = said("fp16")
    talk = begin()
    talk.tell(expected["ids"][0, :PROMPT])
    for token in expected["ids"][0, PROMPT:]:
        talk.tell([int(token)])
    found = states_of(talk)
    wanted = {name for name in expected if name.startswith("cache_params")}
    assert found.keys() == wanted
    for name in wanted:
        assert found[name].state.data.shape == expected[name].shape
        assert distance(found[name].state.data, expected[name]) <= 1e-5


def test_a_conversation_continues_after_its_states_were_set(begin: Any) -> None:
    one, other = begin(), begin()
    one.tell(list(range(200, 230)))
    values = {name: np.array(state.state.data) for name, state in states_of(one).items()}
    for order in (sorted(values), sorted(values, reverse=True)):
        other.reset()
        for name in order:
            states_of(other)[name].state = Tensor(values[name])
        other.said = one.said
        found = other.tell([5, 6, 7][:1])
        assert distance(found, begin().tell([*range(200, 230), 5])) <= 1e-5


def test_a_rewind_before_set_states_is_rejected(begin: Any) -> None:
    one, other = begin(), begin()
    one.tell(list(range(200, 230)))
    for name, state in states_of(one).items():
        states_of(other)[name].state = Tensor(np.array(state.state.data))
    other.said = one.said
    with pytest.raises(StateError, match=r"30 tokens set by set_state.*reset_state"):
        other.tell([5], back=10)
    other.said = one.said
    assert distance(other.tell([9]), begin().tell([*range(200, 230), 9])) <= 1e-5


def test_a_rewind_by_one_step_after_set_states_rereads_it(begin: Any) -> None:
    one, other = begin(), begin(NPUW_LLM_MAX_GENERATION_TOKEN_LEN=4)
    one.tell(list(range(200, 230)))
    for name, state in states_of(one).items():
        states_of(other)[name].state = Tensor(np.array(state.state.data))
    other.said = one.said
    other.tell([5, 6, 7, 8])
    found = other.tell([9], back=2)
    assert distance(found, begin().tell([*range(200, 230), 5, 6, 9])) <= 1e-5


def test_a_state_of_another_shape_is_rejected(begin: Any) -> None:
    name, state = next(each for each in states_of(begin()).items() if "conv" in each[0])
    with pytest.raises(StateError, match=rf"{name}.*\[1, 64, 3\], not float32 \[1, 64, 4\]"):
        state.state = Tensor(np.zeros((1, 64, 4), np.float32))


def test_a_reset_clears_the_states(begin: Any) -> None:
    talk = begin()
    talk.tell(list(range(200, 230)))
    talk.reset()
    assert not any(state.state.data.any() for state in states_of(talk).values())
    assert distance(talk.tell([5, 6]), begin().tell([5, 6])) == 0


def test_a_conversation_is_saved_with_its_states(begin: Any, tmp_path: Path) -> None:
    one, other = begin(), begin()
    one.tell(list(range(200, 230)))
    one.request.save_state(tmp_path / "talk")
    other.tell([3, 4, 5])
    other.request.load_state(tmp_path / "talk")
    other.said = one.said
    back = [*range(200, 225), 9]
    assert distance(other.tell([9], back=5), begin().tell(back)) <= 1e-5


@pytest.mark.long
def test_an_exported_model_keeps_its_states(lfm2: Any, said: Any, tmp_path: Path) -> None:
    options = CHUNKED | {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 4, "NPUW_LLM_SHARED_HEAD": "NO"}
    compiled = Core().compile_model(lfm2("fp16"), "NPU", options)
    compiled.export_model(tmp_path / "blob")
    again = Core().import_model(
        tmp_path / "blob", "NPU", {"WEIGHTS_PATH": str(lfm2("fp16").with_suffix(".bin"))}
    )
    ids = said("fp16")["ids"][0]
    talks = [Talk(one.create_infer_request()) for one in (compiled, again)]
    found = [[talk.tell(ids[:40]), talk.tell(ids[40:42])] for talk in talks]
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("NPUW_LLM_ENABLE_PREFIX_CACHING", "YES"),
        ("NPUW_LLM_BATCH_SLOTS", "1,4"),
        ("NPUW_TEXT_RERANK", "YES"),
        ("NPUW_TEXT_EMBED", "YES"),
    ],
)
def test_options_that_need_single_rows_are_rejected(lfm2: Any, option: str, value: str) -> None:
    reason = "all earlier tokens; leave the option out"
    if option == "NPUW_TEXT_EMBED":
        reason = "not last_hidden_state alone"  # the model writes texts
    with pytest.raises(ModelError, match=rf"{option}.*{reason}"):
        Core().compile_model(lfm2("fp16"), "NPU", CHUNKED | {option: value})


def test_sliding_is_rejected(lfm2: Any) -> None:
    with pytest.raises(ModelError, match="NPUW_LLM_ON_FULL = SLIDE"):
        Core().compile_model(lfm2("fp16"), "NPU", CHUNKED | {"NPUW_LLM_ON_FULL": "SLIDE"})


def test_the_error_for_other_layers_with_states_names_the_state(restored: Any) -> None:
    path = restored(GOLDENS / "linear", "mamba_fp16")
    with pytest.raises(ModelError, match=r"cache_params\.past\.ssm\.0.*not state-space models"):
        Core().compile_model(path, "NPU", CHUNKED)
