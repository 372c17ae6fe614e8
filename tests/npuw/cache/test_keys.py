"""What an entry depends on: all that matters, and nothing else."""

from __future__ import annotations

import dataclasses
from importlib.resources import files

import pytest

from driver_layer.abi import platforms
from npuw_layer.adapters.compiler_layer import StaticCompiler
from npuw_layer.adapters.interpreter import InterpreterDevice
from npuw_layer.adapters.level_zero import LevelZeroDevice
from npuw_layer.cache.key import current_versions, stage_key
from npuw_layer.llm.stages import Kind, Stage, plan
from npuw_layer.options import NAMES, parse_options
from npuw_layer.versions import package_version

MATTERING = {
    "NPUW_LLM_MAX_PROMPT_LEN": 256,
    "NPUW_LLM_MIN_RESPONSE_LEN": 256,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 128,
    "NPUW_LLM_PREFILL_HINT": "STATIC",
    "NPUW_LLM_GENERATE_PYRAMID": "NO",
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "512,1152",
    "NPUW_LLM_BATCH_SLOTS": 4,
    "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8,
    "NPUW_LLM_ON_FULL": "SLIDE",
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
    "NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC",
    "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
    "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES",
    "NPUW_LLM_GENERATE_HINT": "BEST_PERF",
    "NPUW_LLM_SHARED_HEAD": "NO",
    "NPUW_LLM_CACHE_ROPE": "NO",
    "NPUW_WEIGHTS_OFFLOAD": "SYNC",
    "NPUW_LLM_PREFILL_CONFIG": {"NPU_TILES": 1},
    "++NPUW_LLM_PREFILL_CONFIG": {"NPU_TILES": 1},
    "NPUW_LLM_GENERATE_CONFIG": {"NPU_TILES": 1},
    "++NPUW_LLM_GENERATE_CONFIG": {"NPU_TILES": 1},
    "NPUW_LLM_SHARED_HEAD_CONFIG": {"NPU_TILES": 1},
    "++NPUW_LLM_SHARED_HEAD_CONFIG": {"NPU_TILES": 1},
    "NPUW_DEVICES": "CPU",
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": 1,
    "KV_CACHE_PRECISION": "i8",
    "NPU_PLATFORM": "3720",
    "NPU_TILES": 1,
    "CACHE_MODE": "OPTIMIZE_SPEED",
    "ENABLE_WEIGHTLESS": "NO",
    "NPUW_FOLD": "NO",
}
"""Options with values that change what is compiled."""

WITHOUT_EFFECT = {
    "NPU_USE_NPUW": "YES",
    "NPUW_LLM": "YES",
    "NPUW_COMPILER": "npuc",
    "CACHE_DIR": "elsewhere",
    "BLOB_PATH": "x.blob",
    "EXPORT_BLOB": "YES",
    "WEIGHTS_PATH": "x.bin",
    "MODEL_PTR": "x.xml",
    "NPUW_LLM_BATCH_DIM": 0,
    "NPUW_LLM_SEQ_LEN_DIM": 2,
    "NPUW_LLM_MAX_LORA_RANK": 32,
    "NPUW_LLM_SINK_TOKENS": 8,
    "NPUW_LLM_PREFILL_MOE_HINT": "DENSE",
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 64,
    "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": 4,
    "NPUW_LLM_PREFIX_CACHING_MAX_BYTES": 1 << 20,
    "NPUW_LLM_GENERATE_ATTENTION_HINT": "STATIC",
    "NPUW_LLM_GENERATE_MOE_HINT": "DENSE",
    "NPUW_LLM_VOCAB_AS_INPUT": "NO",
    "NPUW_LLM_OPTIMIZE_V_TENSORS": "NO",
    "NPUW_LLM_OPTIMIZE_FP8": "NO",
    "NPUW_LLM_KV_SWITCHOVER": "COPY",
    "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "NO",
    "NPUW_WEIGHTS_BANK": "mine",
    "NPUW_WEIGHTS_BANK_ALLOC": "SHARED",
    "NPUW_WEIGHTS_BUDGET": 1 << 20,
    "NPUW_WEIGHTS_RESERVED": 2,
    "NPUW_SUBMODEL_DEVICE": "lm_head:CPU",
    "NPUW_FALLBACK_EXEC": "NO",
    "NPUW_ACC_CHECK": "YES",
    "NPUW_ACC_THRESH": 0.5,
    "NPUW_ACC_DEVICE": "CPU",
    "NPU_PLATFORM": 4000,
    "ENABLE_WEIGHTLESS": "YES",
    "NPU_TILES": 0,
    "NPUW_LLM_MAX_PROMPT_LEN": 1000,
    "NPUW_LLM_MIN_RESPONSE_LEN": 100,
    "CACHE_MODE": "OPTIMIZE_SIZE",
}
"""Options with values that change no program: they are of a run, or say the same otherwise."""


def names(**given: object) -> set[str]:
    """The entries that a start looks for."""
    options = parse_options({"NPUW_LLM_PREFILL_CHUNK_SIZE": 512} | given)
    kind = {"NPU": LevelZeroDevice, "CPU": InterpreterDevice}[options.devices]
    versions = current_versions(kind(StaticCompiler(), options.platform), options)
    stages = plan(options).stages
    return {stage_key("ab" * 32, stage, versions, options).name for stage in stages}


def test_every_option_is_known_to_matter_or_not() -> None:
    assert MATTERING.keys() | WITHOUT_EFFECT.keys() == NAMES.keys()


@pytest.mark.parametrize("option", MATTERING)
def test_an_option_that_matters_makes_other_entries(option: str) -> None:
    assert names(**{option: MATTERING[option]}) != names()


@pytest.mark.parametrize("option", WITHOUT_EFFECT)
def test_an_option_that_does_not_matter_finds_the_same_entries(option: str) -> None:
    assert names(**{option: WITHOUT_EFFECT[option]}) == names()


def test_a_platform_of_ones_own_is_known_by_what_its_file_says(tmp_path) -> None:
    text = files(platforms).joinpath("4000.toml").read_text()
    paths = [tmp_path / name for name in ("a.toml", "b.toml", "c.toml")]
    for path in paths:
        path.write_text(text.replace("1_473_536", "700_000" if path is paths[2] else "800_000"))
    one, same, other = (names(NPU_PLATFORM=str(path)) for path in paths)
    assert one == same
    assert one != other


def test_any_group_size_quantises_alike() -> None:
    sizes = ({"DYNAMIC_QUANTIZATION_GROUP_SIZE": size} for size in (32, 128))
    assert len({frozenset(names(**size)) for size in sizes}) == 1


def test_a_longer_answer_shares_the_prefill_and_the_small_variants() -> None:
    short, long = names(), names(NPUW_LLM_MIN_RESPONSE_LEN=1024)
    assert len(short & long) >= 3


def test_each_field_of_a_stage_matters() -> None:
    options, stage = parse_options({}), Stage(Kind.GENERATE, 1, 2)

    def name(stage: Stage) -> str:
        return stage_key("ab" * 32, stage, {}, options).name

    for field in dataclasses.fields(Stage):
        value = Kind.PREFILL if field.name == "kind" else 3
        other = dataclasses.replace(stage, **{field.name: value})
        assert name(other) != name(stage), field.name


def test_versions_and_the_model_matter() -> None:
    options, stage = parse_options({}), Stage(Kind.GENERATE, 1, 2)
    versions = {"npuw": "1", "device": "NPU 1"}
    seen = {
        stage_key(model, stage, versions | other, options).name
        for model in ("ab" * 32, "cd" * 32)
        for other in ({}, {"npuw": "2"}, {"device": "NPU 2"})
    }
    assert len(seen) == 6


def test_the_version_of_a_package_changes_with_its_sources(tmp_path, monkeypatch) -> None:
    versions: list[str] = []
    for text in ("a = 1", "a = 2", "a = 1"):
        package = tmp_path / "some_package"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        package_version.cache_clear()
        versions.append(package_version("some_package"))
    package_version.cache_clear()
    assert versions[0] == versions[2] != versions[1]


def test_the_compilers_version_is_in_the_devices() -> None:
    version = LevelZeroDevice(StaticCompiler(), "4000").version
    for part in (package_version("compiler_layer"), "NPU 4000", "ELF 1.2", "MI 11.13"):
        assert part in version
