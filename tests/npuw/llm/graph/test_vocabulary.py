"""Token ids outside the vocabulary are rejected before any program runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.conftest import Talk

from npuw_layer import Core
from npuw_layer.errors import TensorError
from npuw_layer.llm.graph.pipeline import stage_graph
from npuw_layer.llm.plan.stages import plan
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model
from npuw_layer.tensors.names import VOCABULARY, vocabulary_of

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
}
WRONG = [97, 98, -1, 10**6]


def refuses(talk: Talk, wrong: int, count: int) -> None:
    """Check that a wrong id, last but one or the only token, is rejected."""
    index = max(count - 2, 0)
    ids = np.arange(count) % 90
    ids[index:] = wrong
    message = rf"input_ids\[0, {index}\] is {wrong}, not a token id.* has 97 tokens, from 0 to 96"
    with pytest.raises(TensorError, match=message):
        talk.tell(ids)


@pytest.mark.matrix
@pytest.mark.parametrize("devices", ["NPU", "CPU", "OPENVINO_CPU", "NPU,CPU"])
def test_an_id_outside_the_vocabulary_is_rejected_on_every_device(tiny, devices: str) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL | {"NPUW_DEVICES": devices})
    talk, fresh = (Talk(compiled.create_infer_request()) for _ in range(2))
    prompt, last = np.arange(40), [96]
    for wrong in WRONG:
        refuses(talk, wrong, 40)
    np.testing.assert_array_equal(talk.tell(prompt), fresh.tell(prompt))
    for wrong in WRONG:
        said = talk.said
        refuses(talk, wrong, 1)
        talk.said = said
    np.testing.assert_array_equal(talk.tell(last), fresh.tell(last))


def test_ids_of_set_tensor_and_start_async_are_checked_too(tiny) -> None:
    request = Core().compile_model(tiny, "NPU", SMALL).create_infer_request()
    ones = np.ones((1, 3), np.int64)
    request.set_tensor("input_ids", 97 * ones)
    given = {"attention_mask": ones, "position_ids": np.arange(3)[None]}
    with pytest.raises(TensorError, match=r"input_ids\[0, 0\] is 97"):
        request.infer(given)
    request.start_async(given)
    with pytest.raises(TensorError, match=r"input_ids\[0, 0\] is 97"):
        request.wait()


def test_cached_and_imported_programs_have_the_vocabulary_size(tiny, tmp_path) -> None:
    options = SMALL | {"CACHE_DIR": str(tmp_path / "cache")}
    cold, warm = (Core().compile_model(tiny, "NPU", options) for _ in range(2))
    blob = cold.export_model()
    assert blob is not None
    imported = Core().import_model(blob, "NPU", {"WEIGHTS_PATH": str(tiny / "model.safetensors")})
    for compiled in (warm, imported):
        report = compiled.create_infer_request().execution_report()["blobs"]
        assert "compiled" not in report
        refuses(Talk(compiled.create_infer_request()), 97, 5)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [
        {"NPUW_LLM_SHARED_HEAD": "NO"},
        {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
        {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA"},
        {"NPUW_ONLINE_PIPELINE": "REP"},
        {"ENABLE_WEIGHTLESS": "NO"},
        {"NPUW_SPATIAL": "YES", "NPUW_ONLINE_PIPELINE": "SPATIAL"},
        {"NPUW_ACC_CHECK": "YES", "NPUW_ACC_DEVICE": "CPU"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_ids_are_checked_for_every_split(tiny, options: dict[str, Any]) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL | options)
    talk = Talk(compiled.create_infer_request())
    refuses(talk, 97, 40)
    assert np.isfinite(talk.tell(np.arange(40))).all()
    assert np.isfinite(talk.tell([96])).all()


def test_a_model_with_offloaded_weights_checks_ids(tall) -> None:
    options = SMALL | {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"}
    talk = Talk(Core().compile_model(tall, "NPU", options).create_infer_request())
    refuses(talk, 97, 40)
    assert np.isfinite(talk.tell([96])).all()


def test_every_static_model_that_takes_ids_has_the_vocabulary_input(tiny: Path) -> None:
    model, options = read_model(tiny), parse_options({})
    stages = plan(options).stages
    names = {
        stage.name: [port.name for port in stage_graph(model, stage, options).inputs]
        for stage in stages
    }
    known = {name: vocabulary_of(inputs) for name, inputs in names.items()}
    assert known.pop("lm_head") is None
    assert {*known.values()} == {97}
    assert all(port.name != f"{VOCABULARY}97" for port in model.inputs), "it is not changed"


def test_the_vocabulary_input_is_not_a_port(tiny) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL)
    assert [port.any_name for port in compiled.inputs] == [
        "input_ids",
        "attention_mask",
        "position_ids",
        "beam_idx",
    ]


@pytest.mark.parametrize("name", ["npuw_vocabulary_", "npuw_vocabulary_-1", "npuw_vocabulary_9x"])
def test_a_malformed_name_gives_no_vocabulary(name: str) -> None:
    assert vocabulary_of([name]) is None
    assert vocabulary_of(["input_ids", "npuw_vocabulary_12"]) == 12
