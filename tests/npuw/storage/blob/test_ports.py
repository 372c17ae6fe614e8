"""Programs that do not match their names or each other are detected by their ports."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from npuw_layer import Core
from npuw_layer.backends.protocols import Program, TensorInfo
from npuw_layer.errors import BlobError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.imported_ports import check_ports

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_PREFILL_CHUNK_SIZE": 32}

Change = Callable[[TensorInfo], TensorInfo]


@dataclass
class Ports:
    """A program with ports only, which are all that is checked."""

    inputs: list[TensorInfo]
    outputs: list[TensorInfo]

    def create_program(self) -> Program:
        raise AssertionError("no program runs before the check")


@pytest.fixture(scope="module")
def compiled(tiny) -> dict[str, CompiledLLM]:
    """Return models with a separate LM head, and without."""
    return {
        head: Core().compile_model(tiny, "NPU", SMALL | {"NPUW_LLM_SHARED_HEAD": head})._compiled
        for head in ("YES", "NO")
    }


def check(compiled: CompiledLLM, which: str = "", name: str = "", change: Change | None = None):
    """Check a model with one changed port."""
    stages = compiled.plan.stages
    programs = [
        Ports(list(compiled.models[stage].inputs), list(compiled.models[stage].outputs))
        for stage in stages
    ]
    if change is not None:
        program = programs[[stage.name for stage in stages].index(which)]
        for side in (program.inputs, program.outputs):
            side[:] = [change(info) if name in info.name else info for info in side]
    check_ports(stages, programs, compiled.options)


def axis(number: int, by: int) -> Change:
    """Return a change that lengthens an axis."""

    def change(info: TensorInfo) -> TensorInfo:
        shape = list(info.shape)
        shape[number] += by
        return dataclasses.replace(info, shape=tuple(shape))

    return change


def element(name: str) -> Change:
    return lambda info: dataclasses.replace(info, element=name)


def renamed(info: TensorInfo) -> TensorInfo:
    return dataclasses.replace(info, name=f"another {info.name[::-1]}")


HEAD = "npuw_output_embed"

WRONG = [
    ("YES", "lm_head", HEAD, axis(2, 1), "lm_head has npuw_output_embed of another width"),
    ("YES", "lm_head", HEAD, axis(1, 1), r"lm_head has no npuw_output_embed f32 \[1, 1, …\]"),
    ("YES", "lm_head", HEAD, element("f16"), "lm_head has no npuw_output_embed f32"),
    ("YES", "lm_head", "logits", axis(1, 1), "lm_head has no logits"),
    ("YES", "lm_head", "logits", renamed, "lm_head has no logits"),
    ("YES", "generate_192", HEAD, axis(2, 1), "generate_192 has npuw_output_embed of another"),
    ("YES", "prefill_32", HEAD, axis(1, 1), r"prefill_32 has no npuw_output_embed f32 \[1, 32,"),
    ("YES", "prefill_32", HEAD, renamed, "prefill_32 has no npuw_output_embed"),
    ("YES", "prefill_32", "input_ids", axis(1, 1), r"prefill_32 has no input_ids \[1, 32\]"),
    ("YES", "prefill_32", "input_ids", element("i32"), "prefill_32 has input_ids of i32"),
    ("YES", "generate_192", "attention_mask", axis(1, -1), "generate_192 has no attention_mask"),
    ("YES", "generate_192", "read_value", axis(1, 1), "generate_192 has caches of another length"),
    ("YES", "generate_192", "assign", axis(1, 1), "generate_192 has caches of another length"),
    ("YES", "generate_192", "assign", axis(3, 1), "generate_192 has other caches than the rest"),
    ("YES", "generate_192", "read_value", element("f32"), "generate_192 has other caches"),
    ("YES", "generate_192", "assign", renamed, "generate_192 has other caches than the rest"),
    ("NO", "generate_192", "logits", axis(2, 1), "generate_192 has logits of another width"),
    ("NO", "generate_192", "logits", axis(1, 1), r"generate_192 has no logits f32 \[1, 1, …\]"),
    ("NO", "prefill_32", "logits", axis(1, 31), r"prefill_32 has no logits f32 \[1, 1, …\]"),
]


@pytest.mark.matrix
@pytest.mark.parametrize(("head", "which", "name", "change", "problem"), WRONG)
def test_a_port_that_does_not_fit_is_detected(
    compiled, head: str, which: str, name: str, change: Change, problem: str
) -> None:
    with pytest.raises(BlobError, match=problem):
        check(compiled[head], which, name, change)


def test_compiled_models_pass_the_check(compiled) -> None:
    for model in compiled.values():
        check(model)


@pytest.fixture(scope="module")
def adapted(adapt) -> CompiledLLM:
    """Return a model with adapters, also at its LM head."""
    model = adapt("llama_fp16", r"mlp|lm_head")
    return Core().compile_model(model.path, "NPU", SMALL)._compiled


def test_models_with_adapters_pass_the_check(adapted) -> None:
    check(adapted)


@pytest.mark.parametrize(
    ("which", "name", "change"),
    [
        ("generate_192", "layers.0.mlp.up_proj/aten::linear/MatMul.A", axis(0, 1)),
        ("generate_192", "layers.0.mlp.up_proj/aten::linear/MatMul.A", axis(1, 1)),
        ("prefill_32", "layers.1.mlp.down_proj/aten::linear/MatMul.alpha", axis(1, -1)),
        ("lm_head", "MatMul.B", axis(1, 1)),
        ("lm_head", "MatMul.alpha", lambda info: dataclasses.replace(info, element="i8")),
    ],
)
def test_adapters_of_another_shape_are_detected(adapted, which, name, change) -> None:
    with pytest.raises(BlobError, match=r"has vpux_ie_read_value_lora_state\S*MatMul\S* .*, which"):
        check(adapted, which, name, change)


def test_different_adapters_of_programs_are_detected(adapted) -> None:
    def rename(info: TensorInfo) -> TensorInfo:
        return dataclasses.replace(info, name=info.name.replace("up_proj", "left_proj"))

    with pytest.raises(BlobError, match="its programs have different adapters"):
        check(adapted, "generate_192", "lora_state", rename)
