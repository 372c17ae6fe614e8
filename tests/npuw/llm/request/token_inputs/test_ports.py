"""Inputs with a row per token: read from ports, ordered, padded, and checked in blobs."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.errors import BlobError, ModelError
from npuw_layer.llm.imported_ports import check_ports
from npuw_layer.tensors.token_inputs import TokenInput, token_inputs

PORTS = {
    "input_ids": TensorInfo("input_ids", "i64", (-1, -1)),
    "inputs_embeds": TensorInfo("inputs_embeds", "f32", (-1, -1, 5)),
    "position_ids": TensorInfo("position_ids", "i64", (3, -1, -1)),
    "token_type_ids": TensorInfo("token_type_ids", "i64", (-1, -1)),
    "deepstack_visual_embeds": TensorInfo("deepstack_visual_embeds", "f32", (3, 1, -1, 5)),
    "per_layer_inputs": TensorInfo("per_layer_inputs", "f32", (-1, -1, 4, 5)),
}


@given(st.sampled_from([*PORTS]), st.integers(1, 6), st.integers(0, 6))
def test_rows_are_those_of_tokens_and_padding_is_zero(name: str, tokens: int, more: int) -> None:
    port = TokenInput.of(PORTS[name])
    assert port is not None
    values = np.random.default_rng(tokens).integers(1, 9, port.shape(1, tokens))
    assert port.fits(values.shape)
    assert port.rows(values).shape == (tokens, *port.each)
    target = np.full(port.shape(1, tokens + more), -1)
    port.fill(target, port.rows(values))
    axis = len(port.axes) + 1
    assert np.array_equal(target.take(range(tokens), axis), values)
    assert not target.take(range(tokens, tokens + more), axis).any()


def test_the_input_of_tokens_comes_first() -> None:
    mask = TensorInfo("attention_mask", "i64", (-1, -1))
    found = token_inputs([mask, PORTS["token_type_ids"], PORTS["position_ids"], PORTS["input_ids"]])
    assert [one.name for one in found] == ["input_ids", "position_ids", "token_type_ids"]


@pytest.mark.parametrize(
    ("name", "element", "shape"),
    [
        ("input_ids", "i32", (1, 8)),
        ("input_ids", "i64", (8,)),
        ("input_ids", "i64", (3, 1, 8)),
        ("inputs_embeds", "f16", (1, 8, 5)),
        ("inputs_embeds", "f32", (1, 8)),
        ("inputs_embeds", "f32", (1, 8, -1)),
        ("position_ids", "i64", (2, 1, 8)),
        ("position_ids", "i64", (3, 3, 1, 8)),
        ("deepstack_visual_embeds", "f32", (3, 8, 5)),
        ("deepstack_visual_embeds", "f32", (-1, 1, 8, 5)),
        ("deepstack_visual_embeds", "f32", (2, 3, 1, 8, 5)),
        ("per_layer_inputs", "f32", (1, 8, -1, 5)),
        ("per_layer_inputs", "f32", (1, 8, 5)),
        ("per_layer_inputs", "f32", (3, 1, 8, 4, 5)),
    ],
)
def test_inputs_of_other_types_and_shapes_are_rejected(name: str, element: str, shape) -> None:
    with pytest.raises(ModelError, match=f"{name} of {element} .* has no row for each token"):
        TokenInput.of(TensorInfo(name, element, shape))


WRONG = [
    ("prefill_128", "inputs_embeds", {"shape": (1, 64, 96)}, r"no inputs_embeds \[1, 128, 96\]"),
    ("prefill_128", "inputs_embeds", {"element": "f16"}, "has inputs_embeds of f16"),
    ("generate_192", "inputs_embeds", {"shape": (1, 1, 95)}, "other inputs than the rest"),
    ("generate_192", "inputs_embeds", {"name": "other"}, "neither input_ids nor inputs_embeds"),
    ("generate_192", "position_ids", {"shape": (4, 1, 1)}, "other inputs than the rest"),
    ("generate_192", "position_ids", {"shape": (3, 1, 2)}, r"no position_ids \[3, 1, 1\]"),
    ("generate_192", "position_ids", {"name": "other"}, "other inputs than the rest"),
]


@pytest.mark.matrix
@pytest.mark.parametrize(("which", "name", "change", "problem"), WRONG)
def test_the_inputs_of_imported_programs_must_agree(
    qwen, which: str, name: str, change, problem: str
) -> None:
    compiled = qwen.compiled()._compiled
    stages = compiled.plan.stages
    programs = [
        SimpleNamespace(inputs=[*model.inputs], outputs=[*model.outputs])
        for model in compiled.models.values()
    ]
    check_ports(stages, programs, compiled.options)
    program = programs[[stage.name for stage in stages].index(which)]
    program.inputs = [
        dataclasses.replace(info, **change) if info.name == name else info
        for info in program.inputs
    ]
    with pytest.raises(BlobError, match=f"{which} .*{problem}"):
        check_ports(stages, programs, compiled.options)
