"""Conversations with a host-routed mixture, compared with the real OpenVINO."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.execution.experts.counting import CountingNpu

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import Device
from npuw_layer.errors import OptionError
from npuw_layer.execution.isolations import in_parts
from npuw_layer.llm.compiled import compile_llm
from npuw_layer.llm.request.infer_request import InferRequest
from npuw_layer.options import parse_options

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
    "NPUW_LLM_GENERATE_PYRAMID": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
}
BOTH = {
    "NPUW_LLM_PREFILL_MOE_HINT": "HOST_ROUTED",
    "NPUW_LLM_GENERATE_MOE_HINT": "HOST_ROUTED",
}
MIXTURES = (
    *("mixtral_int8", "qwen2_moe_fp16", "dbrx_fp16", "qwen3_moe_int4", "qwen3_moe_deep_fp16"),
)

Expected = Callable[[str], dict[str, np.ndarray]]


def talk(request: Any, said: np.ndarray, count: int) -> tuple[np.ndarray, list[int]]:
    """Return the logits of a prompt, and the tokens that follow it."""
    logits: list[np.ndarray] = []
    told, end = said, 0
    while len(logits) < count:
        begin, end = end, end + told.shape[1]
        fed = {
            "input_ids": told,
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(begin, end)[None],
        }
        logits.append(request.infer(fed)["logits"][0, -1].copy())
        told = np.array([[logits[-1].argmax()]])
    return logits[0], [int(each.argmax()) for each in logits]


def nobody(name: str) -> Device:
    raise AssertionError(f"{name} is not avoided")


def check(core: Core, path: Path, expected: dict[str, np.ndarray], **options: str) -> Any:
    """Check that a model returns OpenVINO's results; return the model."""
    compiled = core.compile_model(path, "NPU", SMALL | options)
    first, said = talk(
        compiled.create_infer_request(), expected["prompt_100"], len(expected["greedy"])
    )
    reference = expected["logits_100"]
    assert np.abs(first - reference).max() <= 1e-4 * np.abs(reference).max()
    assert said == expected["greedy"].tolist()
    return compiled


@pytest.mark.matrix
@pytest.mark.parametrize("name", MIXTURES)
def test_the_npu_returns_the_results_of_openvino(exported, expected: Expected, name):
    check(Core(), exported(name), expected(name), **BOTH)


@pytest.mark.long
@pytest.mark.parametrize("name", ["mixtral_int4", "qwen3_moe_fp16", "qwen2_moe_fp16"])
def test_the_interpreter_returns_the_results_of_openvino(exported, expected: Expected, name):
    check(Core(device=InterpreterDevice()), exported(name), expected(name), **BOTH)


def test_a_token_runs_only_its_chosen_experts(exported, expected: Expected):
    """Five layers of sixteen experts, of which a token chooses six."""
    npu, name = CountingNpu(), "qwen3_moe_deep_fp16"
    options = {"NPUW_LLM_GENERATE_MOE_HINT": "HOST_ROUTED"}
    compiled = Core(device=npu).compile_model(exported(name), "NPU", SMALL | options)
    assert npu.loaded["expert"] == 1, "all experts of all layers are one program"
    talk(compiled.create_infer_request(), expected(name)["prompt_7"], 1)
    assert not npu.runs["expert"], "prompts use all experts"
    talk(compiled.create_infer_request(), expected(name)["prompt_7"], 4)
    assert npu.runs["expert"] == 3 * 5 * 6


@pytest.mark.long
@pytest.mark.parametrize("name", ["qwen3_moe_fp16", "mixtral_int4"])
def test_each_weight_is_in_memory_once(exported, expected: Expected, name):
    """Dense prefill models and the experts of generate models read the same bytes."""
    sizes: list[int] = []
    tokens: list[list[int]] = []
    for hint in ("DENSE", "HOST_ROUTED"):
        given = {"NPUW_LLM_GENERATE_MOE_HINT": hint, "INFERENCE_PRECISION_HINT": "f16"}
        options = parse_options(SMALL | given)
        npu = LevelZeroDevice(StaticCompiler(), "4000")
        device = in_parts(npu, options, nobody)
        compiled = compile_llm(exported(name), device, options)
        tokens.append(talk(InferRequest(compiled), expected(name)["prompt_7"], 3)[1])
        sizes.append(compiled.bank.nbytes)
    assert sizes[0] == sizes[1]
    assert tokens[0] == tokens[1], "at f16"


@pytest.mark.long
def test_a_routed_model_is_cached_exported_and_imported(exported, expected: Expected, tmp_path):
    name = "mixtral_int8"
    core, path, expects = Core(), exported(name), expected(name)
    cached = BOTH | {"CACHE_DIR": str(tmp_path / "cache")}
    once, again = (check(core, path, expects, **cached) for _ in range(2))
    assert not once.get_property("LOADED_FROM_CACHE")
    assert again.get_property("LOADED_FROM_CACHE")
    dense = core.compile_model(path, "NPU", SMALL | {"CACHE_DIR": str(tmp_path / "cache")})
    assert not dense.get_property("LOADED_FROM_CACHE")
    again.export_model(tmp_path / "model.blob")
    imported = core.import_model(
        tmp_path / "model.blob", "NPU", {"MODEL_PTR": str(path), "NPUW_MOE_POOL_SIZE": 3}
    )
    assert imported.get_property("NPUW_LLM_GENERATE_MOE_HINT") == "HOST_ROUTED"
    _, said = talk(imported.create_infer_request(), expects["prompt_100"], 5)
    assert said == expects["greedy"].tolist()[:5]


@pytest.mark.long
def test_blobs_may_contain_the_weights(exported, expected: Expected, tmp_path):
    name = "qwen3_moe_int4"
    own = {"ENABLE_WEIGHTLESS": "NO", "NPUW_LLM_GENERATE_HINT": "BEST_PERF"}
    compiled = check(Core(), exported(name), expected(name), **BOTH, **own)
    compiled.export_model(tmp_path / "model.blob")
    imported = Core().import_model(tmp_path / "model.blob", "NPU", {})
    _, said = talk(imported.create_infer_request(), expected(name)["prompt_100"], 5)
    assert said == expected(name)["greedy"].tolist()[:5]


@pytest.mark.long
def test_concurrent_conversations_share_the_runs_of_experts(exported, expected: Expected):
    npu, name = CountingNpu(), "mixtral_int4"
    options = {"NPUW_LLM_BATCH_SLOTS": 4, "NPUW_LLM_GENERATE_MOE_HINT": "HOST_ROUTED"}
    compiled = Core(device=npu).compile_model(exported(name), "NPU", SMALL | options)
    engine = compiled.create_batching()
    requests = [engine.open() for _ in range(3)]
    prompts = [expected(name)["prompt_7"][0, :length] for length in (7, 5, 3)]
    futures = [one.submit(ids) for one, ids in zip(requests, prompts, strict=True)]
    said: list[list[int]] = [[], [], []]
    for _ in range(4):
        before = npu.runs["expert"]
        while engine.wait(0):
            engine.step()
        assert npu.runs["expert"] - before <= 2 * 4, "each of a layer's four experts runs once"
        for number, future in enumerate(futures):
            said[number].append(int(future.result(0).argmax()))
            futures[number] = requests[number].submit(np.array(said[number][-1:]))
    alone = [talk(compiled.create_infer_request(), ids[None], 4)[1] for ids in prompts]
    assert said == alone


@pytest.mark.long
def test_a_model_without_experts_is_unchanged(llama_8m_ir, llama_8m_goldens, caplog):
    caplog.set_level("INFO")
    requests = [
        Core().compile_model(llama_8m_ir, "NPU", SMALL | hints).create_infer_request()
        for hints in ({}, BOTH)
    ]
    assert "the model has no mixture of experts" in caplog.text
    prompt = np.arange(1, 8)[None]
    (one, said), (other, also) = (talk(request, prompt, 3) for request in requests)
    assert (one == other).all()
    assert said == also


@pytest.mark.long
@pytest.mark.parametrize("more", [{"NPUW_DEVICES": "NPU,CPU"}, {"NPUW_ACC_CHECK": "YES"}], ids=str)
def test_several_devices_may_run_experts(exported, expected: Expected, more):
    name = "mixtral_int4"
    compiled = Core().compile_model(exported(name), "NPU", SMALL | BOTH | more)
    request = compiled.create_infer_request()
    _, said = talk(request, expected(name)["prompt_100"], 4)
    assert said == expected(name)["greedy"].tolist()[:4]
    assert "| MOE ×2: NPU" in request.execution_report()["device of generate_192"]


@pytest.mark.long
@pytest.mark.parametrize("devices", ["OPENVINO_CPU", "NPU,OPENVINO_CPU"])
def test_experts_run_on_the_real_plugin_too(exported, expected: Expected, devices):
    name = "mixtral_int4"
    check(Core(), exported(name), expected(name), **BOTH, NPUW_DEVICES=devices)


def test_layers_and_experts_cannot_both_be_submodels(exported):
    with pytest.raises(OptionError, match="NPUW_ONLINE_PIPELINE = REP"):
        Core().compile_model(
            exported("mixtral_int4"), "NPU", SMALL | BOTH | {"NPUW_ONLINE_PIPELINE": "REP"}
        )


@pytest.mark.long
@pytest.mark.parametrize("pipeline", ["INIT", "JUST"])
def test_a_mixture_can_be_cut_anywhere(exported, expected: Expected, pipeline):
    """Cuts may separate the ops that choose experts from those that scatter weights to experts."""
    name = "qwen3_moe_fp16"
    check(Core(), exported(name), expected(name), NPUW_ONLINE_PIPELINE=pipeline)


@pytest.mark.matrix
@pytest.mark.parametrize("hint", ["HOST_ROUTED", "DEVICE_ROUTED"])
def test_attention_may_be_isolated_together_with_experts(exported, expected: Expected, hint):
    name = "qwen3_moe_int4"
    more = {"NPUW_ONLINE_ISOLATE": "ATTN", "NPUW_LLM_GENERATE_MOE_HINT": hint}
    check(Core(), exported(name), expected(name), **more)


def test_compatibility_of_the_export_is_not_ensured(exported, tmp_path):
    asked = {"EXPORT_BLOB": "YES", "BLOB_PATH": str(tmp_path / "x.blob")}
    with pytest.raises(OptionError, match="partitioned mixtures of experts"):
        Core().compile_model(
            exported("mixtral_int4"),
            "NPU",
            SMALL | BOTH | asked | {"NPUW_ENSURE_COMPATIBILITY": "YES"},
        )


def test_weights_of_routed_experts_cannot_be_offloaded(exported):
    with pytest.raises(OptionError, match="leave the MOE_HINTs at DENSE"):
        Core().compile_model(
            exported("mixtral_int4"), "NPU", SMALL | BOTH | {"NPUW_WEIGHTS_OFFLOAD": "SYNC"}
        )
