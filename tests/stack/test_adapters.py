"""Adapter files, from LLMPipeline down to the blob: texts are those of openvino_genai.

See tools/make_lora_goldens.py and tests/goldens/adapter_files.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS

import genai_layer
from genai_layer import Adapter, AdapterConfig, AdapterError, ConfigError, LLMPipeline
from genai_layer.errors import PropertyError, RuntimeFailure

NPU = {"INFERENCE_PRECISION_HINT": "f32", "MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}
Make = Callable[..., LLMPipeline]


@pytest.fixture(scope="module")
def files(load_module) -> Any:
    return load_module(GOLDENS / "adapter_files.py")


@pytest.fixture(scope="module")
def golden() -> Mapping[str, Any]:
    return json.loads((GOLDENS / "adapter_texts.json").read_text())


@pytest.fixture(scope="module")
def adapters(files, tmp_path_factory) -> Mapping[str, Adapter]:
    paths = files.write_files(tmp_path_factory.mktemp("adapters"))
    return {name: Adapter(path) for name, path in paths.items()}


@pytest.fixture(scope="module")
def folder(demo, demo_ir, tmp_path_factory) -> Path:
    """IR of the demo model, written by the exporter, with its tokenizer."""
    folder = tmp_path_factory.mktemp("folder")
    for file in (*demo.glob("*.json"), demo_ir, demo_ir.with_suffix(".bin")):
        shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="module")
def make(folder, tmp_path_factory) -> Make:
    cache = {"CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}

    def pipeline(config: AdapterConfig | None, path: Path = folder, **options: Any) -> LLMPipeline:
        return LLMPipeline(path, "NPU", adapters=config, **NPU | cache | options)

    return pipeline


@pytest.fixture(scope="module")
def pipeline(make, files, adapters) -> LLMPipeline:
    """Pipeline that supports all adapters."""
    return make(files.config_of(genai_layer, files.FIRST, adapters))


def ask(files, pipeline, pairs, adapters) -> list[str]:
    return files.ask(genai_layer, pipeline, files.Step(pairs), adapters)


@pytest.mark.long
def test_each_step_generates_openvino_genais_texts(pipeline, files, adapters, golden) -> None:
    """Steps in sequence: one adapter, several, other alphas, none, the previous ones."""
    for name, step in files.STEPS.items():
        assert files.ask(genai_layer, pipeline, step, adapters) == golden["steps"][name], name


def test_the_golden_texts_of_the_steps_differ(golden) -> None:
    assert len({tuple(said) for said in golden["steps"].values()}) == 13
    assert golden["steps"]["none"] == golden["plain"]


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["MODE_AUTO", "MODE_STATIC_RANK", "MODE_STATIC", "MODE_FUSE"])
def test_our_pipeline_on_the_real_openvino_generates_the_same_texts(
    folder, files, adapters, golden, mode
) -> None:
    """Only genai's part is tested: names, blending and states, independent of the runtime."""
    exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    pairs = files.config_of(genai_layer, files.FIXED, adapters).get_adapters_and_alphas()
    fixed = AdapterConfig(pairs, AdapterConfig.Mode[mode])
    pipeline = LLMPipeline(folder, "CPU", adapters=fixed, **exact)
    assert ask(files, pipeline, None, adapters) == golden["modes"][mode]
    if mode == "MODE_AUTO":
        known = files.config_of(genai_layer, files.FIRST, adapters)
        pipeline = LLMPipeline(folder, "CPU", adapters=known, **exact)
        for name in ("as it was made", "none", "names of kohya", "four at once", "bf16"):
            found = files.ask(genai_layer, pipeline, files.STEPS[name], adapters)
            assert found == golden["steps"][name], name


def test_a_hugging_face_folder_supports_adapters(demo, make, files, adapters, golden) -> None:
    pipeline = make(AdapterConfig([adapters["all"], adapters["head"]]), demo)
    for name in ("one", "the head", "none"):
        found = files.ask(genai_layer, pipeline, files.STEPS[name], adapters)
        assert found == golden["steps"][name], name


@pytest.mark.long
def test_texts_in_slots_have_the_current_adapters(demo, make, files, adapters, golden) -> None:
    """Slots follow from call to call; a copied conversation keeps its adapters."""
    config = AdapterConfig([adapters["all"]])
    slots = make(config, demo, NPUW_LLM_BATCH_SLOTS="1,3")
    for name, own in (("one", config), ("none", AdapterConfig()), ("one", config)):
        found = slots.generate([*files.PROMPTS], max_new_tokens=files.NEW_TOKENS, adapters=own)
        assert found.texts == golden["steps"][name], name
    beams = {"num_beams": 3, "num_return_sequences": 3, "max_new_tokens": 6}
    expected = make(config, demo).generate([files.PROMPTS[0]], **beams)
    assert slots.generate([files.PROMPTS[0]], **beams).texts == expected.texts


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["MODE_AUTO", "MODE_STATIC_RANK", "MODE_STATIC", "MODE_FUSE"])
def test_each_mode_generates_openvino_genais_texts(make, files, adapters, golden, mode) -> None:
    """Requests that a mode does not support are rejected; openvino_genai ignores them."""
    same = files.config_of(genai_layer, files.FIXED, adapters)
    pairs = same.get_adapters_and_alphas()
    pipeline = make(AdapterConfig(pairs, AdapterConfig.Mode[mode]))
    assert ask(files, pipeline, None, adapters) == golden["modes"][mode]
    named = AdapterConfig(pairs, AdapterConfig.Mode[mode.replace("AUTO", "DYNAMIC")])
    for config in (same, named):
        pipeline.generate("What?", max_new_tokens=1, adapters=config)
    if mode != "MODE_AUTO":
        more = AdapterConfig([*pairs, *pairs])
        with pytest.raises(ConfigError, match=f"in {mode} .*use MODE_DYNAMIC"):
            pipeline.generate("What?", max_new_tokens=1, adapters=more)
        assert ask(files, pipeline, None, adapters) == golden["modes"][mode]


def test_adapter_configs_behave_like_openvino_genais(files, adapters, golden) -> None:
    assert files.facts(genai_layer, adapters) == golden["facts"]


def test_a_chat_continues_with_another_adapter_without_traces_of_the_first(
    pipeline, make, adapters
) -> None:
    """Earlier turns are read again: K and V keep no trace of the previous adapter."""
    history = genai_layer.ChatHistory([{"role": "user", "content": "What is an NPU?"}])
    options = {"max_new_tokens": 8, "adapters": AdapterConfig(adapters["all"], 0.8)}
    history.append({"role": "assistant", "content": str(pipeline.generate(history, **options))})
    history.append({"role": "user", "content": "And a blob?"})
    options["adapters"] = AdapterConfig(adapters["attention"])
    found = pipeline.generate(history, **options)
    assert (
        found.texts == make(AdapterConfig(adapters["attention"])).generate(history, **options).texts
    )


def test_a_prefix_cache_distinguishes_adapters(make, files, adapters, golden) -> None:
    config = files.config_of(genai_layer, files.FIRST, adapters)
    cached = make(config, NPUW_LLM_ENABLE_PREFIX_CACHING="YES")
    for name in ("one", "none", "one", "another"):
        found = files.ask(genai_layer, cached, files.STEPS[name], adapters)
        assert found == golden["steps"][name], name


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["llama_int4", "gemma2_fp16"])
def test_exported_models_with_adapters_generate_openvino_genais_tokens(
    load_module, restored, demo, tmp_path, name
) -> None:
    """Quantised weights, other families; ranks up to 32; files as PEFT writes them."""
    tools = load_module(GOLDENS / "adapters.py")
    said = json.loads((GOLDENS / "adapters.json").read_text())[name]
    path = restored(GOLDENS / "exported", name)
    for file in (*demo.glob("*token*.json"), path, path.with_suffix(".bin")):
        shutil.copy(file, tmp_path)
    adapted = _adapted(tools, path)
    wishes = {n: wish for n, wish in tools.WISHES.items() if wish.kind == "f32"}
    files = {
        n: [
            Adapter(tools.write_adapter(tmp_path / f"{n}{i}.safetensors", adapted, each))
            for i, each in enumerate(wish.drawn(adapted))
        ]
        for n, wish in wishes.items()
    }
    known = AdapterConfig(files["rank 32"])
    pipeline = LLMPipeline(tmp_path, "NPU", adapters=known, **NPU)
    for n, wish in wishes.items():
        config = AdapterConfig(list(zip(files[n], wish.alphas, strict=True)))
        found = pipeline.generate(
            np.array([said["prompt"]]), max_new_tokens=24, ignore_eos=True, adapters=config
        )
        assert found.tokens[0] == said["tokens"][n], n
    if name == "llama_int4":
        fused = AdapterConfig(files["rank 1"], AdapterConfig.Mode.MODE_FUSE)
        with pytest.raises(RuntimeFailure, match=r"weights of .* are quantized.*MODE_STATIC"):
            LLMPipeline(tmp_path, "NPU", adapters=fused, **NPU)


def _adapted(tools: Any, path: Path) -> Any:
    import openvino as ov

    return tools.insert_adapters(ov.Core().read_model(path))


@pytest.mark.long
def test_a_blob_keeps_its_adapters(make, files, adapters, golden, tmp_path) -> None:
    """Adapters in states are set again after the import; fixed ones are part of the blob."""
    known = AdapterConfig(adapters["all"])
    blob = tmp_path / "states.blob"
    make(known, EXPORT_BLOB="YES", BLOB_PATH=str(blob))
    again = make(known, BLOB_PATH=str(blob))
    for name in ("one", "none", "another alpha"):
        found = files.ask(genai_layer, again, files.STEPS[name], adapters)
        assert found == golden["steps"][name], name
    fixed = AdapterConfig(adapters["all"], AdapterConfig.Mode.MODE_STATIC)
    make(fixed, EXPORT_BLOB="YES", BLOB_PATH=str(tmp_path / "fixed.blob"))
    alone = make(None, BLOB_PATH=str(tmp_path / "fixed.blob"))
    assert ask(files, alone, None, adapters) == golden["steps"]["one"]
    for config, path in ((known, "fixed.blob"), (fixed, "states.blob")):
        with pytest.raises(AdapterError, match="BLOB_PATH has no states for them"):
            make(config, BLOB_PATH=str(tmp_path / path))


@pytest.mark.long
def test_unsupported_adapters_are_rejected_and_the_pipeline_stays_usable(
    pipeline, make, files, adapters, golden
) -> None:
    mode = AdapterConfig.Mode
    alike = ask(files, pipeline, [("all", 1.0)], adapters)
    for config, error, why in (
        (AdapterConfig(adapters["all"], mode.MODE_FUSE), ConfigError, "created in MODE_DYNAMIC"),
        (AdapterConfig([adapters["all"]] * 5), AdapterError, r"all\.safetensors.*MAX_LORA_RANK"),
    ):
        with pytest.raises(error, match=why):
            pipeline.generate("What?", max_new_tokens=2, adapters=config)
        assert ask(files, pipeline, None, adapters) == alike == golden["steps"]["one"]
    few = make(AdapterConfig(adapters["attention"]))
    with pytest.raises(
        AdapterError, match=r"all\.safetensors: the model has no adaptable layer 'model\."
    ):
        few.generate("What?", max_new_tokens=2, adapters=AdapterConfig(adapters["all"]))
    with pytest.raises(ConfigError, match="the pipeline was created without"):
        make(None).generate("What?", max_new_tokens=2, adapters=AdapterConfig(adapters["all"]))


def test_too_large_a_rank_is_rejected_before_compilation(make, adapters) -> None:
    with pytest.raises(
        RuntimeFailure, match=r"MAX_LORA_RANK = 4: the adapters have rank 8 together"
    ):
        make(AdapterConfig(adapters["all"]), NPUW_LLM_MAX_LORA_RANK=4)


def test_npu_chat_accepts_adapters(folder, adapters, golden, capsys) -> None:
    """FILE, or FILE=ALPHA; an error is one line."""
    from genai_layer.tools.chat import main

    file = adapters["all"].source
    argv = [str(folder), "--device", "CPU", "--max-new-tokens", "24", "--prompt", "What is an NPU?"]
    exact = ["-c", "INFERENCE_PRECISION_HINT=f32", "-c", "KV_CACHE_PRECISION=f32"]
    for given, name in ((file, "one"), (f"{file}=0.8", "another alpha")):
        assert main([*argv, *exact, "--adapter", given]) == 0
        assert capsys.readouterr().out == golden["steps"][name][0] + "\n"
    assert main([*argv, "--adapter", "no.safetensors"]) == 2
    assert capsys.readouterr().err == "npu-chat: no.safetensors: no such file\n"
    with pytest.raises(SystemExit):
        main([*argv, "--adapter", f"{file}=much"])
    assert "is not FILE or FILE=ALPHA" in capsys.readouterr().err


def test_other_pipelines_reject_adapters(folder, adapters) -> None:
    known = AdapterConfig(adapters["all"])
    with pytest.raises(PropertyError, match="adapters: only LLMPipeline and VLMPipeline"):
        genai_layer.TextEmbeddingPipeline(folder, "NPU", adapters=known)


def test_adapters_in_the_dictionary_are_accepted_and_must_be_a_config(folder, adapters) -> None:
    for wrong in (adapters["all"], [adapters["all"]], "all.safetensors"):
        with pytest.raises(PropertyError, match="an AdapterConfig"):
            LLMPipeline(folder, "CPU", adapters=wrong)
    given = {"adapters": AdapterConfig(adapters["head"])}
    with pytest.warns(DeprecationWarning, match="properties in a dictionary"):
        pipeline = LLMPipeline(folder, "CPU", given)
    assert pipeline.get_generation_config().adapters == given["adapters"]


def test_a_runtime_without_adapters_is_reported(folder, adapters) -> None:
    from genai_layer.testing.memory_runtime import MemoryCore

    core = MemoryCore(np.zeros((2048, 2048), np.float32))
    with pytest.raises(PropertyError, match="adapters: device NPU does not support them"):
        LLMPipeline(folder, "NPU", core=core, adapters=AdapterConfig(adapters["all"]))
