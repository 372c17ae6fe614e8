"""Requests have OpenVINO's API: dynamic ports, tensors by name, concurrent requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuw_layer.errors import InferenceCancelled, OptionError, TensorError

IDS = np.random.default_rng(9).integers(10, 512, (1, 100))
GIVEN = {"input_ids": IDS, "attention_mask": np.ones_like(IDS)}


@pytest.mark.parametrize(
    ("name", "inputs", "output"),
    [
        ("qwen3", ["input_ids", "attention_mask"], ("last_hidden_state", (-1, -1, 64))),
        (
            "bert",
            ["input_ids", "attention_mask", "token_type_ids"],
            ("last_hidden_state", (-1, -1, 64)),
        ),
        ("xlmr", ["input_ids", "attention_mask"], ("logits", (-1, 1))),
    ],
)
def test_ports_are_those_of_the_exported_model(
    compiled: Callable[..., Any], name: str, inputs: list[str], output: tuple[str, Any]
) -> None:
    model = compiled(name)
    assert [port.any_name for port in model.inputs] == inputs
    assert {port.partial_shape for port in model.inputs} == {(-1, -1)}
    assert (model.output().any_name, model.output(0).partial_shape) == output
    assert model.input("input_ids").element_type == "i64"
    with pytest.raises(TensorError, match="no output 'other'"):
        model.output("other")


def test_tensors_are_set_and_read_by_name(compiled: Callable[..., Any]) -> None:
    request = compiled("qwen3").create_infer_request()
    with pytest.raises(TensorError, match="no tensor"):
        request.get_tensor("last_hidden_state")
    for name, array in GIVEN.items():
        request.set_tensor(name, array)
    request.start_async()
    request.wait()
    found = request.get_tensor("last_hidden_state").data
    np.testing.assert_array_equal(found, request.infer(GIVEN)["last_hidden_state"])
    np.testing.assert_array_equal(request.get_output_tensor().data, found)
    assert request.query_state() == []


def test_requests_run_concurrently(compiled: Callable[..., Any]) -> None:
    model = compiled("qwen3")
    requests = [model.create_infer_request() for _ in range(3)]
    texts = [np.roll(IDS, n)[:, : 100 - 30 * n] for n in range(3)]
    given = [{"input_ids": t, "attention_mask": np.ones_like(t)} for t in texts]
    expected = [model.create_infer_request().infer(one) for one in given]
    for request, one in zip(requests, given, strict=True):
        request.start_async(one)
    for request, one in zip(requests, expected, strict=True):
        request.wait()
        found = request.get_tensor("last_hidden_state").data
        np.testing.assert_array_equal(found, one["last_hidden_state"])


def test_a_batch_is_cancelled_before_its_next_text(compiled: Callable[..., Any]) -> None:
    request = compiled("bert").create_infer_request()
    reader = request._reader
    read = reader.read

    def cancelling(text: Any) -> Any:
        request.cancel()
        return read(text)

    reader.read = cancelling
    with pytest.raises(InferenceCancelled):
        request.infer(GIVEN)
    reader.read = read
    assert request.infer(GIVEN)


def test_position_ids_may_be_set(compiled: Callable[..., Any]) -> None:
    request = compiled("qwen3").create_infer_request()
    positions = np.arange(100)[None]
    expected = request.infer(GIVEN)["last_hidden_state"]
    same = request.infer({**GIVEN, "position_ids": positions})["last_hidden_state"]
    np.testing.assert_array_equal(same, expected)
    apart = positions + 50 * (positions > 50)
    found = request.infer({**GIVEN, "position_ids": apart})["last_hidden_state"]
    np.testing.assert_allclose(found[:, :50], expected[:, :50], rtol=1e-4, atol=1e-4)
    assert np.abs(found - expected)[:, 51:].max() > 1e-2
    for wrong in (positions - 1, positions + 100):
        with pytest.raises(TensorError, match="position_ids are from"):
            request.infer({**GIVEN, "position_ids": wrong})


def test_options_are_read_back(compiled: Callable[..., Any]) -> None:
    model = compiled("qwen3")
    assert model.get_property("NPUW_TEXT_EMBED") is True
    assert model.get_property("NPUW_LLM_MAX_PROMPT_LEN") == 128
    assert model.get_property("EXECUTION_DEVICES") == ["NPU"]
    with pytest.raises(OptionError, match="NPUW_TEXT_EMBED"):
        model.get_property("NPUW_TEXT_EMBD")


@pytest.mark.parametrize("name", ["qwen3", "bert", "xlmr"])
@pytest.mark.parametrize("wrong", [-1, 10**6])
def test_an_id_outside_the_vocabulary_is_rejected_only_within_a_text(
    compiled: Callable[..., Any], name: str, wrong: int
) -> None:
    request = compiled(name).create_infer_request()
    texts = np.repeat(IDS[:, :20], 2, 0)
    mask = np.ones_like(texts)
    mask[:, 15:] = 0
    texts[:, 15:] = wrong  # after the texts, where nothing is read
    given = {"input_ids": texts, "attention_mask": mask}
    request.infer(given)
    texts[1, 7] = wrong
    with pytest.raises(TensorError, match=rf"input_ids\[1, 7\] is {wrong}, not a token id"):
        request.infer(given)
