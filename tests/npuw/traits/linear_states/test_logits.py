"""Layers with a state in place of K and V equal OpenVINO in all configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.npuw.conftest import Talk
from tests.npuw.traits.linear_states.conftest import (
    CHUNKED,
    LENGTHS,
    PROMPT,
    SEVERAL_LENGTHS,
    distance,
)

from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core

WAYS: dict[str, dict[str, Any]] = {
    "whole": LENGTHS | {"NPUW_LLM_PREFILL_HINT": "STATIC"},
    "in chunks": SEVERAL_LENGTHS,
    "several tokens at once, with its own head": CHUNKED
    | {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8, "NPUW_LLM_SHARED_HEAD": "NO"},
    "transposed, not folded": CHUNKED | {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES", "NPUW_FOLD": "NO"},
    "in blocks": CHUNKED | {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
    "pyramid": CHUNKED | {"NPUW_LLM_PREFILL_ATTENTION_HINT": "PYRAMID"},
    "host flash attention": CHUNKED | {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA"},
    "on OpenVINO": CHUNKED | {"NPUW_DEVICES": "OPENVINO_CPU"},
    "in parts": CHUNKED | {"NPUW_ONLINE_PIPELINE": "REG"},
}


@pytest.mark.matrix
@pytest.mark.parametrize("way", WAYS)
def test_all_configurations_give_the_same_logits(lfm2: Any, said: Any, way: str) -> None:
    talk = Talk(Core().compile_model(lfm2("fp16"), "NPU", WAYS[way]).create_infer_request())
    check(talk, said("fp16"), 1e-5)


@pytest.mark.long
def test_weights_of_8_bits_give_the_same_logits(lfm2: Any, said: Any) -> None:
    talk = Talk(Core().compile_model(lfm2("int8"), "NPU", CHUNKED).create_infer_request())
    check(talk, said("int8"), 1e-5)


@pytest.mark.long
@pytest.mark.parametrize(("precision", "bound"), [("f16", 2e-2), ("bf16", 2e-1)])
def test_narrow_types_give_close_logits(lfm2: Any, said: Any, precision: str, bound: float) -> None:
    options = CHUNKED | {"INFERENCE_PRECISION_HINT": precision}
    talk = Talk(Core().compile_model(lfm2("fp16"), "NPU", options).create_infer_request())
    check(talk, said("fp16"), bound)


def check(talk: Talk, said: Any, bound: float) -> None:
    """Compare a prompt, and the tokens generated after it."""
    ids, logits = said["ids"][0], said["logits"]
    found = [talk.tell(ids[:PROMPT]), *(talk.tell(ids[n : n + 1]) for n in range(PROMPT, len(ids)))]
    assert distance(np.array(found), logits) <= bound


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_tokens_may_be_split_anywhere_and_rewound(begin: Any, data: st.DataObject) -> None:
    """Each sequence ends with the logits of the same tokens in one run."""
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    talk = begin(NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="YES", NPUW_LLM_MAX_GENERATION_TOKEN_LEN=4)
    said: list[int] = []
    for _ in range(data.draw(st.integers(1, 5))):
        back = data.draw(st.integers(0, max(len(said) - 1, 0)))
        del said[len(said) - back :]
        most = 20 if said else 60
        new = [*map(int, draw.integers(10, 1000, data.draw(st.integers(1 if said else 2, most))))]
        found = talk.tell(new, back=back)
        said += new
    assert distance(found, begin().tell(said)) <= 1e-5


def test_a_prompt_of_one_token_has_no_context(begin: Any) -> None:
    """A longer prompt has equal logits; the exporter's graph puts one token in the wrong place."""
    both = begin()
    both.tell([17, 40, 401])
    alone = begin()
    for token in (17, 40):
        alone.tell([token])
    assert distance(alone.tell([401]), begin().tell([17, 40, 401])) <= 1e-5


@pytest.mark.long
def test_a_rewind_within_the_last_step_rereads_no_prompt(begin: Any) -> None:
    talk = begin(NPUW_LLM_MAX_GENERATION_TOKEN_LEN=4)
    talk.tell(list(range(100, 140)))
    before = talk.request.execution_report()["prefill"]
    talk.tell([7, 8, 9, 10])
    found = talk.tell([11], back=2)
    assert talk.request.execution_report()["prefill"] == before
    assert distance(found, begin().tell([*range(100, 140), 7, 8, 11])) <= 1e-5


def test_outputs_of_reread_tokens_are_not_returned(lfm2: Any, tmp_path: Path) -> None:
    """A long rewind reads tokens again; the caller already has their hidden states."""
    model = read_ir(lfm2("fp16"))
    states = model.outputs[0].value.owner.operands[0]
    model.set_outputs([("logits", model.outputs[0].value), ("last_hidden_state", states)])
    write_ir(model, tmp_path / "model.xml")
    compiled = Core().compile_model(tmp_path / "model.xml", "NPU", CHUNKED)
    talk = Talk(compiled.create_infer_request())
    talk.tell(list(range(100, 140)))
    talk.tell([7])
    talk.tell([8], back=20)
    found = talk.request.get_tensor("last_hidden_state").data
    fresh = Talk(compiled.create_infer_request())
    fresh.tell([*range(100, 121), 8])
    np.testing.assert_allclose(
        found, fresh.request.get_tensor("last_hidden_state").data[:, -1:], rtol=1e-4, atol=1e-4
    )


@pytest.mark.long
def test_a_full_cache_reads_the_rest_again(begin: Any) -> None:
    talk = begin(NPUW_LLM_ON_FULL="TRUNCATE", NPUW_LLM_MIN_RESPONSE_LEN=16)
    said = [*range(100, 225)]
    talk.tell(said)
    for token in range(300, 380):
        found = talk.tell([token])
        said.append(token)
    kept = talk.request._conversation.history.ids
    assert len(kept) < len(said)
    assert distance(found, begin().tell(kept)) <= 1e-5
