"""Plans from ``config.json`` alone, compared with compiled programs.

Weights of large models are shapes in both; the compiler needs no values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from compiler_layer.compile import compile_model, foldings
from compiler_layer.errors import NotPeriodic
from compiler_layer.frontends.huggingface import sample as samples
from compiler_layer.frontends.huggingface.families import FAMILIES, read_decoder
from compiler_layer.model import Model
from compiler_layer.pipeline import Options as CompilerOptions
from compiler_layer.quantize.rewrite import quantize_shapes
from compiler_layer.quantize.schemes import Format
from compiler_layer.tools.npuc import main as npuc
from driver_layer.loader.read import read_blob
from driver_layer.npu.timeline import predict
from npuw_layer import CompiledModel, Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.errors import ModelError, OptionError
from npuw_layer.llm.graph.pipeline import stage_graph
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.options import Options, parse_options
from npuw_layer.plan import EXPECTED_ERROR, Prediction, plan_model
from npuw_layer.storage.container import STAGE, read_container
from npuw_layer.storage.manifest import EntryManifest

MEMORY_ERROR = 0.05
"""Relative error of all memory; weights and caches are exact."""

LLAMA = {
    "model_type": "llama",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
}
LLAMA_1B = LLAMA | {
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}
LLAMA_70B = LLAMA | {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
LLAMA_8B = LLAMA | {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 3,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 8192,
}
QWEN2 = LLAMA | {
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 4,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}
GEMMA3 = {
    "model_type": "gemma3_text",
    "hidden_size": 640,
    "intermediate_size": 2048,
    "num_hidden_layers": 7,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "vocab_size": 32000,
    "sliding_window": 512,
    "query_pre_attn_scalar": 256,
}
GEMMA2 = {
    "model_type": "gemma2",
    "hidden_size": 640,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "vocab_size": 256000,
    "query_pre_attn_scalar": 256,
}
GRANITE = LLAMA | {
    "model_type": "granite",
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 256155,
    "logits_scaling": 8.0,
}
PHI3 = LLAMA | {
    "model_type": "phi3",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 3,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32064,
}
GPT2 = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 3,
    "n_head": 12,
    "vocab_size": 8192,
    "activation_function": "gelu_new",
}


@dataclass(frozen=True)
class Case:
    """A model, the format of its weights, and options."""

    config: Mapping[str, Any]
    weights: str
    options: Mapping[str, Any]

    @property
    def format(self) -> Format | None:
        return None if self.weights == "fp16" else Format(self.weights)

    def __str__(self) -> str:
        options = "-".join(str(value) for value in self.options.values())
        return f"{self.config['model_type']}-{self.weights}-{options}"


BLOCKS = {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"}


def case(config: Mapping[str, Any], weights: str, prompt: int, **options: Any) -> Case:
    return Case(config, weights, {"NPUW_LLM_MAX_PROMPT_LEN": prompt, **options})


CASES = [
    case(LLAMA_1B, "int4", 256),
    case(LLAMA_1B, "int8", 128, NPU_PLATFORM="3720"),
    case(LLAMA_1B, "fp16", 512, NPU_PLATFORM="5010", NPUW_LLM_PREFILL_CHUNK_SIZE=128),
    case(LLAMA_1B, "int8", 128, KV_CACHE_PRECISION="i8", DYNAMIC_QUANTIZATION_GROUP_SIZE=-1),
    case(LLAMA_1B, "fp16", 128, KV_CACHE_PRECISION="f16", INFERENCE_PRECISION_HINT="f32"),
    case(LLAMA_1B, "int8", 128, NPUW_LLM_BATCH_SLOTS=4, KV_CACHE_PRECISION="f8e4m3"),
    case(LLAMA_1B, "int8", 256, NPUW_LLM_PREFILL_CHUNK_SIZE=64, **BLOCKS),
    case(LLAMA_8B, "int4", 64),
    case(QWEN2, "int4", 256),
    case(GEMMA3, "fp16", 128, NPU_PLATFORM="5010"),
    case(GEMMA2, "int8", 64),
    case(GRANITE, "int4", 64, NPU_PLATFORM="5010"),
    case(PHI3, "int4", 64),
    case(GPT2, "int4", 128),
]


def write_config(folder: Path, config: Mapping[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def shapes_of(config: Path, weights: Format | None) -> Model:
    """Return a complete model, with all layers, whose weights are shapes."""
    placeholder = samples.PlaceholderAllocator()
    decoder = read_decoder(config)
    model = samples.write_shapes(decoder, placeholder, config)
    if weights is not None:
        quantize_shapes(model, weights, placeholder.place)
    return model


def compiled(model: Model, stage: Stage, options: Options) -> bytes:
    """Compile one static model with the complete compiler."""
    settings = CompilerOptions(
        options.precision,
        options.platform,
        integer_activations=options.dynamic_quantization_group_size != 0,
        weightless=True,
    )
    for smaller in (*foldings(model), model):
        graph = stage_graph(smaller, stage, options)
        try:
            return compile_model(graph, settings)
        except NotPeriodic:
            continue
    raise AssertionError("the last graph is not folded")


def test_the_error_is_smallest_for_decode(tmp_path: Path) -> None:
    """Decode of a layer of real size determines the speed, and the time that conversations wait."""
    folder = write_config(tmp_path, LLAMA_1B)
    options = parse_options({"NPUW_LLM_MAX_PROMPT_LEN": 1024})
    plan = plan_model(folder, options, Format("int4"))
    one = plan.generate[-1]
    blob = compiled(shapes_of(folder / "config.json", Format("int4")), one.stage, options)
    assert error(one.seconds, max(task.end_ns for task in predict(blob)) / 1e9) <= 0.10


def error(predicted: float, actual: float) -> float:
    return abs(predicted / actual - 1)


@pytest.mark.matrix
@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_times_and_sizes_equal_those_of_compiled_programs(case: Case, tmp_path: Path) -> None:
    folder = write_config(tmp_path, case.config)
    options = parse_options(case.options)
    plan = plan_model(folder, options, case.format)
    whole = shapes_of(folder / "config.json", case.format)
    for one in (plan.prefill[-1], plan.generate[-1], plan.stages[-1]):
        blob = compiled(whole, one.stage, options)
        seconds = max(task.end_ns for task in predict(blob)) / 1e9
        assert error(one.seconds, seconds) <= EXPECTED_ERROR, (one.stage, one.seconds, seconds)
        assert error(one.whole.blob_bytes, len(blob)) <= EXPECTED_ERROR, (
            one.whole.blob_bytes,
            len(blob),
        )


class CountingDevice(LevelZeroDevice):
    """An NPU that counts allocated bytes."""

    allocated = 0

    def allocate(self, nbytes: int) -> Any:
        self.allocated += nbytes
        return super().allocate(nbytes)


@pytest.mark.long
@pytest.mark.parametrize("weights", [Format("int8"), Format("int4", 128)], ids=["int8", "int4"])
def test_memory_equals_that_of_a_conversation(weights: Format, demo: Path, tmp_path: Path) -> None:
    """The demo model, exported with real weights, compiled by npuw and loaded on the device."""
    size = [] if weights.group_size is None else ["--group-size", str(weights.group_size)]
    command = ["export", str(demo), str(tmp_path / "ir"), "--weight-format", weights.name, *size]
    assert npuc(command) == 0
    config = {"NPUW_LLM_MAX_PROMPT_LEN": 1024, "CACHE_DIR": str(tmp_path / "cache")}
    device = CountingDevice(StaticCompiler(), "4000")
    compiled = Core(device=device).compile_model(tmp_path / "ir", "NPU", config)
    request = compiled.create_infer_request()
    count = np.arange(600)[None]  # chunks of all models that copy their rows
    ids = {"input_ids": count % 100, "attention_mask": np.ones_like(count), "position_ids": count}
    request.infer(ids)
    entries = sorted((tmp_path / "cache").glob("*.blob"))
    read = (read_container(memoryview(path.read_bytes()), STAGE, EntryManifest) for path in entries)
    blobs = [bytes(entry.programs[0]) for entry in read]
    scratch = [
        section.size
        for blob in blobs
        for section in read_blob(blob).sections
        if section.name == "buffer.DDR.0"
    ]
    plan = plan_model(demo, parse_options(config), weights)
    found = {item.name: item.nbytes for item in plan.memory}
    stored = sum(item.nbytes for item in plan.weights)
    file = (tmp_path / "ir" / "openvino_model.bin").stat().st_size
    assert error(stored, file) <= 0.01
    tensors = found["K and V cache"] + found["inputs, outputs"]
    assert error(tensors, device.allocated) <= 0.01
    assert error(found["scratch"], sum(scratch)) <= 0.10
    programs = found["programs"] + found["constants in programs"]
    assert error(programs, sum(map(len, blobs))) <= EXPECTED_ERROR
    actual = file + device.allocated + sum(scratch) + sum(map(len, blobs))
    assert error(plan.total_bytes, actual) <= MEMORY_ERROR
    del request


@pytest.mark.matrix
@pytest.mark.parametrize("head", ["YES", "NO"])
def test_weights_are_planned_once_with_any_blobs(demo: Path, tmp_path: Path, head: str) -> None:
    """The demo model's LM head is its embedding: all programs share one copy of it."""
    config = {
        "NPUW_LLM_MAX_PROMPT_LEN": 128,
        "ENABLE_WEIGHTLESS": "NO",
        "NPUW_LLM_SHARED_HEAD": head,
    }
    compiled = cast("CompiledModel", Core().compile_model(demo, "NPU", config))
    plan = plan_model(demo, parse_options(config), None)
    programs = {stage: len(one) for stage, one in compiled._compiled.programs.items()}
    for one in plan.stages:
        assert error(one.whole.blob_bytes, programs[one.stage]) <= EXPECTED_ERROR, one.stage
    stored = sum(item.nbytes for item in plan.weights)
    compiled.export_model(tmp_path / "demo.blob")
    whole = stored + sum(one.whole.blob_bytes for one in plan.stages)
    assert error(whole, (tmp_path / "demo.blob").stat().st_size) <= MEMORY_ERROR


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Prediction:
    """Return a plan of a model of 70 B, of which only the config is available."""
    folder = write_config(tmp_path_factory.mktemp("70b"), LLAMA_70B)
    return plan_model(folder, parse_options({"NPUW_LLM_PREFILL_CHUNK_SIZE": 256}), Format("int4"))


def test_a_model_of_70_b_is_planned_without_its_weights(large: Prediction) -> None:
    assert large.parameters == 70_553_706_496  # as in Meta's checkpoint
    weights = {item.name: item.nbytes for item in large.weights}
    assert weights["feed-forward"] == 80 * 3 * 8192 * 28672 // 2
    assert weights["embedding"] == weights["head"] == 128256 * 8192
    # For each 128 weights a scale of 16 bits and a zero point of 4 bits, which programs read as 8.
    channels = 80 * (2 * 8192 * (8192 + 1024) + 3 * 8192 * 28672)
    assert weights["scales and zero points"] >= channels // 128 * 3
    memory = {item.name: item.nbytes for item in large.memory}
    assert memory["K and V cache"] == 80 * 2 * 1152 * 8 * 128 * 2
    assert memory["constants in programs"] < 1e7, "zero points are weights, which programs share"
    assert [one.stage.capacity for one in large.generate] == [256, 512, 1024, 1152]


def test_decode_of_a_large_model_is_bound_by_memory_and_prefill_by_matmuls(
    large: Prediction,
) -> None:
    assert {one.bound for one in large.generate} == {"DDR"}
    assert large.prefill[-1].bound == "DPU"
    # Each token reads all weights of the layers and of the LM head, at 136 GB/s.
    sizes = {item.name: item.nbytes for item in large.weights}
    least = (sum(sizes.values()) - sizes["embedding"]) / 136e9
    token = large.generate[0].seconds + large.head_seconds(1)
    assert least <= token <= 1.5 * least
    assert large.tokens_per_s(large.generate[0]) == 1 / token


@pytest.mark.long
def test_a_model_that_does_not_fit_the_device_has_a_warning(tmp_path: Path) -> None:
    folder = write_config(tmp_path, LLAMA_70B)
    advised = re.compile(r"lower (\w+) to (\d+), and set (\w+) to NO$")
    (warning,) = plan_model(folder, parse_options({}), Format("int4")).warnings
    found = advised.search(warning)
    assert found is not None
    followed = parse_options({found[1]: found[2], found[3]: "NO"})
    assert not plan_model(folder, followed, Format("int4")).warnings


def test_a_longer_prompt_takes_more_chunks(large: Prediction) -> None:
    seconds = {one.stage.name: one.seconds for one in large.stages}
    assert large.ttft(256) == seconds["lm_head"] + seconds["prefill_256"]
    assert large.ttft(512) == large.ttft(256) + seconds["prefill_256_after_256"]
    with pytest.raises(OptionError, match="prompt of 1025 tokens; raise NPUW_LLM_MAX_PROMPT_LEN"):
        large.ttft(1025)


def test_a_few_more_tokens_take_a_small_chunk(large: Prediction) -> None:
    seconds = {one.stage.name: one.seconds for one in large.stages}
    assert large.ttft(64) == seconds["lm_head"] + seconds["prefill_64_after_256"]
    assert large.ttft(257) == large.ttft(256) + seconds["prefill_16_after_256"]
    assert seconds["prefill_16_after_256"] < seconds["prefill_256_after_256"] / 2


def test_several_tokens_of_a_step_share_a_run_of_the_lm_head(tmp_path: Path) -> None:
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}
    plan = plan_model(write_config(tmp_path, LLAMA_1B), parse_options(options), None)
    seconds = {one.stage.name: one.seconds for one in plan.stages}
    step = seconds["generate_8_after_184"] + seconds["lm_head_8"]
    assert plan.tokens_per_s(plan.generate[0]) == 8 / step
    assert plan.ttft(64) == seconds["prefill_64"] + seconds["lm_head"]


def test_planning_takes_no_longer_for_more_layers(tmp_path: Path) -> None:
    """Equal layers are planned once: the test counts operations, not time."""
    sizes = []
    for layers in (4, 400):
        config = write_config(tmp_path, LLAMA_1B | {"num_hidden_layers": layers}) / "config.json"
        sample = samples.read_sample(config)
        sizes.append(len(list(sample.model.body.ops)))
        assert sum(sample.counts) == layers
    assert sizes[0] == sizes[1]


def test_each_kind_of_layer_is_multiplied_by_its_number(tmp_path: Path) -> None:
    config = write_config(tmp_path, GEMMA3 | {"num_hidden_layers": 26}) / "config.json"
    sample = samples.read_sample(config)
    windows = [layer.window for layer in sample.decoder.layers]
    sliding = sum(window is not None for window in windows)
    assert sorted(sample.counts) == sorted([1, sliding - 1, 26 - sliding])


def test_an_unknown_family_is_rejected_with_the_known_ones(tmp_path: Path) -> None:
    folder = write_config(tmp_path, {"model_type": "mamba"})
    with pytest.raises(ModelError, match="mamba") as caught:
        plan_model(folder, parse_options({}), None)
    assert all(family in str(caught.value) for family in FAMILIES)


def test_weights_stored_in_another_format_than_requested_have_a_note(tmp_path: Path) -> None:
    """576 channels are not divisible into groups of 128: they keep 8 bits."""
    odd = LLAMA_1B | {"hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3}
    folder = write_config(tmp_path, odd)
    options = parse_options({"NPUW_LLM_MAX_PROMPT_LEN": 64})
    (note,) = plan_model(folder, options, Format("int4", 128)).notes
    assert (
        "8 bits: 576 is not a multiple of 128; another --group-size may divide their width" in note
    )
    assert plan_model(folder, options, Format("int4")).notes == ()
    assert plan_model(folder, options, None).notes == ()


def test_a_plan_of_other_devices_is_rejected(tmp_path: Path) -> None:
    folder = write_config(tmp_path, LLAMA_1B)
    with pytest.raises(OptionError, match="NPUW_DEVICES = CPU: a plan supports only the NPU"):
        plan_model(folder, parse_options({"NPUW_DEVICES": "CPU"}), None)
    with pytest.raises(OptionError, match="attention hint HFA: the host's part depends"):
        plan_model(folder, parse_options({"NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA"}), None)
