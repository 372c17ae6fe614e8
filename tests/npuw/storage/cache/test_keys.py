"""The dependencies of a cache entry: all inputs that change programs, and no others."""

from __future__ import annotations

import dataclasses
from importlib.resources import files
from pathlib import Path

import pytest

from driver_layer.abi import platforms
from driver_layer.support.versions import package_version
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.openvino import OpenVINODevice
from npuw_layer.errors import OptionError
from npuw_layer.execution.core_devices import CoreDevices
from npuw_layer.execution.offload.device import offloading
from npuw_layer.llm.plan.stage_key import stage_key, stage_versions
from npuw_layer.llm.plan.stages import Stage, StageKind, plan
from npuw_layer.options import NAMES, RUN_TIME, parse_options
from npuw_layer.storage.cache.key import weights_key

SEVERAL = {"NPUW_DEVICES": "NPU,CPU"}

MATTERING: dict[str, object] = {
    "NPUW_LLM_MAX_PROMPT_LEN": 256,
    "NPUW_LLM_MIN_RESPONSE_LEN": 256,
    "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8,
    "NPUW_LLM_BATCH_DIM": 1,
    "NPUW_LLM_SEQ_LEN_DIM": 1,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 128,
    "NPUW_LLM_PREFILL_HINT": "STATIC",
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
    "NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC",
    "NPUW_LLM_GENERATE_PYRAMID": "NO",
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "512,1152",
    "NPUW_LLM_GENERATE_HINT": "BEST_PERF",
    "NPUW_LLM_MAX_LORA_RANK": 64,
    "NPUW_LLM_SHARED_HEAD": "NO",
    "NPUW_LLM_PREFILL_CONFIG": {"NPU_TILES": 1},
    "++NPUW_LLM_PREFILL_CONFIG": {"NPUW_FOLD": "NO"},
    "NPUW_LLM_GENERATE_CONFIG": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": -1},
    "++NPUW_LLM_GENERATE_CONFIG": {"NPU_TILES": 1},
    "NPUW_LLM_SHARED_HEAD_CONFIG": {"NPU_TILES": 1},
    "NPUW_LLM_PREFILL_MOE_HINT": "HOST_ROUTED",
    "NPUW_LLM_GENERATE_MOE_HINT": "HOST_ROUTED",
    "NPUW_LLM_BATCH_SLOTS": 4,
    "NPUW_LLM_CACHE_ROPE": "NO",
    "NPUW_LLM_ON_FULL": "SLIDE",
    "++NPUW_LLM_SHARED_HEAD_CONFIG": {"NPU_TILES": 1},
    "NPUW_DEVICES": "CPU",
    "NPUW_ACC_CHECK": "YES",
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": -1,
    "KV_CACHE_PRECISION": "i8",
    "NPUW_LLM_OPTIMIZE_FP8": "YES",
    "NPUW_LLM_OPTIMIZE_V_TENSORS": "YES",
    "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES",
    "NPUW_WEIGHTS_OFFLOAD": "SYNC",
    "NPU_PLATFORM": "3720",
    "NPU_TILES": 1,
    "NPUW_FOLD": "NO",
    "NPUW_ONLINE_PIPELINE": "REP",
    "NPUW_ONLINE_ISOLATE": "ATTN",
    "NPUW_ONLINE_AVOID": "P:SDPA/NPU",
    "NPUW_PLAN": str(Path(__file__).with_name("plan.xml")),
    "NPUW_WHISPER": "YES",
    "NPUW_TEXT_EMBED": "YES",
    "NPUW_TEXT_RERANK": "YES",
}
"""Options with values that change programs."""

SAME: dict[str, object] = {
    "NPU_USE_NPUW": "YES",
    "NPU_BATCH_MODE": "COMPILER",
    "NPUW_LLM": "YES",
    "NPUW_COMPILER": "npuc",
    "NPU_PLATFORM": 4000,
    "ENABLE_WEIGHTLESS": "NO",
    "NPU_TILES": 0,
    "NPUW_SUBMODEL_DEVICE": "last:NPU",
    "NPUW_LLM_MAX_PROMPT_LEN": 1000,
    "NPUW_LLM_MIN_RESPONSE_LEN": 100,
    "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
    "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES",
    "NPUW_LLM_PREFILL_CONFIG": {"NPU_TILES": 0},
    "++NPUW_LLM_GENERATE_CONFIG": '{"NPUW_FOLD": "YES"}',
    "CACHE_MODE": "OPTIMIZE_SPEED",
    "NPUW_MOE_TOKEN_CHUNK_SIZE": 16,
    "NPUW_LLM_GENERATE_ATTENTION_HINT": "PYRAMID",
    "NPUW_LLM_OPTIMIZE_V_TENSORS": "NO",
    "NPUW_ONLINE_NO_FOLD": "",
    "NPUW_FOLD_ONLY": "",
    "NPUW_ATTN": "STATIC",
    "NPUW_EAGLE": "YES",
    "NPUW_GQA": "YES",
    "NPUW_ONLINE_MIN_SIZE": 12,
    "NPUW_ONLINE_KEEP_BLOCKS": 3,
    "NPUW_ONLINE_KEEP_BLOCK_SIZE": 30,
    "NPUW_SPATIAL": "NO",
    "NPUW_SPATIAL_NWAY": 64,
    "NPUW_SPATIAL_DYN": "NO",
    "NPUW_WHISPER_EOS_TOKEN": 3,
    "NPUW_WHISPER_DECOMPOSE_SDPA": "YES",
    "NPUW_WHISPER_ENCODER_LEN": 100,
    "NPUW_KOKORO": "YES",
    "NPUW_FLUX2": "YES",
    "NPUW_PA": "YES",
    "NPUW_PA_DEVICE": "CPU",
    "NPUW_KOKORO_BLOCK_SIZE": 100,
    "NPUW_KOKORO_OVERLAP_SIZE": 10,
}
"""Values that change no program: other spellings, or options without effect."""

OF_A_RUN: dict[str, object] = {
    "CACHE_DIR": "elsewhere",
    "NPUW_CACHE_DIR": "elsewhere",
    "BLOB_PATH": "x.blob",
    "EXPORT_BLOB": "YES",
    "WEIGHTS_PATH": "x.bin",
    "MODEL_PTR": "x.xml",
    "CACHE_ENCRYPTION_CALLBACKS": (bytes, bytes),
    "NPUW_ENSURE_COMPATIBILITY": "YES",
    "NPU_UNTRUSTED_SOURCE": "YES",
    "NPU_EXPORT_RAW_BLOB": "YES",
    "NPU_IMPORT_RAW_BLOB": "YES",
    "NPU_DISABLE_VERSION_CHECK": "YES",
    "NPUW_LLM_KV_SWITCHOVER": "COPY",
    "NPUW_LLM_SINK_TOKENS": 9,
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 64,
    "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": 9,
    "NPUW_LLM_PREFIX_CACHING_MAX_BYTES": 9,
    "NPUW_MOE_POOL_SIZE": 9,
    "NPUW_WEIGHTS_BANK": "b",
    "NPUW_WEIGHTS_BANK_ALLOC": "SHARED",
    "NPUW_WEIGHTS_BUDGET": 9,
    "NPUW_WEIGHTS_RESERVED": 9,
    "NPUW_ONLINE_DUMP_PLAN": "plan.xml",
    "NPUW_DUMP_FULL": "YES",
    "NPUW_DUMP_SUBS": "YES",
    "NPUW_DUMP_SUBS_DIR": "dumps",
    "NPUW_DUMP_SUBS_ON_FAIL": "last",
    "NPUW_DUMP_IO": "0,last",
    "NPUW_DUMP_IO_ITERS": "YES",
    "PERF_COUNT": "YES",
    "NPU_PROFILING_TYPE": "INFER",
    "MODEL_PRIORITY": "HIGH",
    "WORKLOAD_TYPE": "EFFICIENT",
    "NPUW_FALLBACK_EXEC": "NO",
    "NPUW_ACC_THRESH": 0.5,
    "NPUW_ACC_DEVICE": "NPU",
    "NPUW_DQ": "YES",
    "NPU_COMPILER_DYNAMIC_QUANTIZATION": "YES",
    "NPU_ENABLE_STRIDES_FOR": "input_ids",
    "PERFORMANCE_HINT": "LATENCY",
    "LOG_LEVEL": "LOG_INFO",
    "NPUW_DQ_FULL": "NO",
    "NPUW_DCOFF_TYPE": "f16",
    "NPUW_DCOFF_SCALE": "YES",
    "NPUW_UNQDQ": "YES",
    "NPUW_MM_GATED": "NO",
    "NPUW_PMM": "NO",
    "NPUW_SLICE_OUT": "YES",
    "NPUW_HOST_GATHER": "NO",
    "NPUW_LLM_VOCAB_AS_INPUT": "YES",
    "NPUW_CWAI": "YES",
    "NPUW_FUNCALL_FOR_ALL": "YES",
    "NPUW_FUNCALL_ASYNC": "YES",
    "NPUW_UNFOLD_IREQS": "YES",
    "NPUW_FUSE_UNFOLDED": "YES",
    "NPUW_ONLINE_KEEP_BLOCKS_TAGGED": "attn",
    "NPUW_F16IC": "NO",
    "NPUW_ATTN_DYN": "NO",
    "NPUW_ATTN_NO_COPY": "YES",
    "NPUW_ATTN_HFA_FUSED": "YES",
    "NPUW_ATTN_HFA_MASK_SKIPPING": "YES",
    "NPUW_PARALLEL_COMPILE": "YES",
    "NPU_TURBO": "YES",
    "NPU_BYPASS_UMD_CACHING": "YES",
    "NPU_COMPILER_TYPE": "DRIVER",
    "NPU_DEFER_WEIGHTS_LOAD": "YES",
    "NUM_STREAMS": 2,
    "PERFORMANCE_HINT_NUM_REQUESTS": 4,
    "NPU_RUN_INFERENCES_SEQUENTIALLY": "YES",
}
"""Options that have an effect only at run time."""


def names(**given: object) -> set[str]:
    """Return the names of the entries that a start looks for."""
    options = parse_options({"NPUW_LLM_PREFILL_CHUNK_SIZE": 512} | given)
    stages = plan(options).stages
    device = CoreDevices(StaticCompiler()).of_stages(options, [stage.name for stage in stages])
    if options.weights_offload != "NO":
        device = offloading(device, Path(), options)
    return {
        stage_key("ab" * 32, stage, stage_versions(device, options, stage.kind.value), options).name
        for stage in stages
    }


def test_every_option_is_classified() -> None:
    assert MATTERING.keys() | SAME.keys() | OF_A_RUN.keys() == NAMES.keys()
    assert OF_A_RUN.keys() == RUN_TIME
    assert not RUN_TIME & (MATTERING.keys() | SAME.keys())


def test_isolated_attention_is_another_program() -> None:
    hint = "NPUW_LLM_GENERATE_ATTENTION_HINT"
    kinds = [
        {},
        {hint: "HFA"},
        {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA"},
        {hint: "HFA", "NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA"},
        {hint: "HFA", "NPUW_LLM_PREFILL_CHUNK_SIZE": 256},
        {**SEVERAL, hint: "DYNAMIC"},
        SEVERAL,
    ]
    found = [names(**kind) for kind in kinds]
    assert all(a.isdisjoint(b) for n, a in enumerate(found) for b in found[:n])


@pytest.mark.parametrize("option", MATTERING)
def test_an_option_that_changes_programs_has_other_entries(option: str) -> None:
    others = SEVERAL if option == "NPUW_ONLINE_AVOID" else {}
    assert names(**others, **{option: MATTERING[option]}) != names(**others)


EVERYWHERE = {
    "NPUW_LLM_SHARED_HEAD",
    "NPUW_DEVICES",
    "NPUW_ACC_CHECK",
    "INFERENCE_PRECISION_HINT",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE",
    "KV_CACHE_PRECISION",
    "NPUW_LLM_OPTIMIZE_FP8",
    "NPUW_LLM_OPTIMIZE_V_TENSORS",
    "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE",
    "NPUW_WEIGHTS_OFFLOAD",
    "NPU_PLATFORM",
    "NPU_TILES",
    "NPUW_FOLD",
}
"""Options that change programs without changing the set of stages."""


@pytest.mark.parametrize("option", sorted(EVERYWHERE))
def test_an_option_that_changes_programs_shares_no_entry(option: str) -> None:
    assert not names(**{option: MATTERING[option]}) & names()


def test_the_stride_of_transposed_rows_depends_on_the_capacity() -> None:
    wide, narrow = (
        names(NPUW_LLM_OPTIMIZE_V_TENSORS="YES", NPUW_LLM_MIN_RESPONSE_LEN=length)
        for length in (128, 256)
    )
    assert not wide & narrow, "also for programs of equal lengths"


@pytest.mark.parametrize("option", SAME)
def test_options_of_equal_meaning_share_the_entries(option: str) -> None:
    assert names(**{option: SAME[option]}) == names()


@pytest.mark.matrix
@pytest.mark.parametrize("option", OF_A_RUN)
@pytest.mark.parametrize(
    "others",
    [
        {},
        SEVERAL,
        {"NPUW_ACC_CHECK": "YES"},
        {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"},
        {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"},
        {"NPUW_LLM_GENERATE_MOE_HINT": "HOST_ROUTED"},
    ],
    ids=lambda others: next(iter(others), "alone"),
)
def test_run_time_options_share_the_entries(option: str, others: dict[str, object]) -> None:
    if "NPUW_WEIGHTS_OFFLOAD" in others and option.startswith("NPUW_WEIGHTS_BANK"):
        with pytest.raises(OptionError, match="leave NPUW_WEIGHTS_BANK"):
            names(**others, **{option: OF_A_RUN[option]})
        return
    assert names(**others, **{option: OF_A_RUN[option]}) == names(**others)


def test_the_rows_of_experts_change_host_routed_programs() -> None:
    routed = {"NPUW_LLM_PREFILL_MOE_HINT": "HOST_ROUTED"}
    assert names(**routed, NPUW_MOE_TOKEN_CHUNK_SIZE=16) != names(**routed)


def test_options_of_a_pipeline_change_programs_of_that_pipeline() -> None:
    ways: list[dict[str, object]] = [
        {"NPUW_ONLINE_PIPELINE": "INIT"},
        {"NPUW_ONLINE_PIPELINE": "JUST"},
        {"NPUW_ONLINE_PIPELINE": "JUST", "NPUW_ONLINE_MIN_SIZE": 12},
        {"NPUW_ONLINE_PIPELINE": "REP"},
        {"NPUW_ONLINE_PIPELINE": "REP", "NPUW_ONLINE_KEEP_BLOCKS": 3},
        {"NPUW_ONLINE_PIPELINE": "REP", "NPUW_ONLINE_KEEP_BLOCK_SIZE": 30},
        {"NPUW_ONLINE_PIPELINE": "COMPUTE"},
        {"NPUW_ONLINE_ISOLATE": "COMPUTE"},
        {"NPUW_ONLINE_PIPELINE": "COMPUTE", "NPUW_SPATIAL": "YES"},
        {"NPUW_ONLINE_PIPELINE": "SPATIAL"},
        {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_SPATIAL_NWAY": 64},
        {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_SPATIAL_DYN": "NO"},
    ]
    found = [names(**way) for way in ways]
    assert all(a.isdisjoint(b) for n, a in enumerate(found) for b in found[:n])
    assert names(NPUW_ONLINE_PIPELINE="REG") == names(NPUW_ONLINE_PIPELINE="REP")


def test_the_order_of_several_devices_changes_programs() -> None:
    assert names(**SEVERAL, NPUW_SUBMODEL_DEVICE="last:CPU") != names(**SEVERAL)


def test_an_option_of_a_stage_changes_only_its_entries() -> None:
    """Four prefill models, four generate models and the LM head."""
    one, other = names(), names(**{"++NPUW_LLM_SHARED_HEAD_CONFIG": {"NPU_TILES": 1}})
    assert len(one) == len(other) == len(one & other) + 1


@pytest.mark.parametrize(
    "own",
    [
        {"NPUW_DEVICES": "CPU"},
        {"NPUW_DEVICES": "NPU,CPU"},
        {"NPUW_ONLINE_PIPELINE": "REP"},
        {"NPUW_ONLINE_ISOLATE": "ATTN"},
        {"NPUW_PLAN": str(Path(__file__).with_name("plan.xml"))},
    ],
    ids=lambda own: next(iter(own)),
)
def test_device_and_partitioning_of_a_stage_change_only_its_entries(own: object) -> None:
    """Other stages may have such options, too: programs include their stage."""
    prefill = {"++NPUW_LLM_PREFILL_CONFIG": {"NPUW_DEVICES": "NPU,CPU,OPENVINO_CPU"}}
    one, other = names(**prefill), names(**prefill, **{"++NPUW_LLM_GENERATE_CONFIG": own})
    assert len(one) == len(other)
    assert len(one - other) == len(plan(parse_options({})).generate) < len(one)


@pytest.mark.parametrize("option", ["NPUW_FALLBACK_EXEC", "NPUW_ACC_THRESH", "NPUW_DUMP_SUBS_DIR"])
def test_run_time_options_of_a_stage_share_the_entries(option: str) -> None:
    """Models without options of stages share them, too."""
    name = "++NPUW_LLM_GENERATE_CONFIG"
    for own in ({}, {"NPUW_DEVICES": "NPU,CPU"}, {"NPUW_ONLINE_PIPELINE": "REP"}):
        assert names(**{name: own | {option: OF_A_RUN[option]}}) == names(**{name: own})


def test_a_user_defined_platform_is_identified_by_its_content(tmp_path) -> None:
    text = files(platforms).joinpath("4000.toml").read_text()
    paths = [tmp_path / name for name in ("a.toml", "b.toml", "c.toml")]
    for path in paths:
        path.write_text(text.replace("1_473_536", "700_000" if path is paths[2] else "800_000"))
    one, same, other = (names(NPU_PLATFORM=str(path)) for path in paths)
    assert one == same
    assert one != other


def test_all_spellings_of_one_group_per_token_are_one_choice() -> None:
    spellings = (-1, "-1", (1 << 64) - 1)
    sizes = ({"DYNAMIC_QUANTIZATION_GROUP_SIZE": size} for size in spellings)
    assert len({frozenset(names(**size)) for size in sizes}) == 1


def test_a_longer_answer_shares_the_prefill_and_the_small_variants() -> None:
    short, long = names(), names(NPUW_LLM_MIN_RESPONSE_LEN=1024)
    assert len(short & long) >= 3


def test_each_field_of_a_stage_changes_the_key() -> None:
    options, stage = parse_options({}), Stage(StageKind.GENERATE, 1, 2)
    others = {"kind": StageKind.PREFILL, "tokens": 3, "past": 3, "slots": 3}
    assert others.keys() == {field.name for field in dataclasses.fields(Stage)}
    for name, value in others.items():
        other = dataclasses.replace(stage, **{name: value})
        one, two = (stage_key("ab" * 32, which, {}, options).name for which in (stage, other))
        assert one != two, name


def test_versions_and_the_model_change_the_key() -> None:
    options, stage = parse_options({}), Stage(StageKind.GENERATE, 1, 2)
    versions = {"npuw": "1", "device": "NPU 1"}
    seen = {
        stage_key(model, stage, versions | other, options).name
        for model in ("ab" * 32, "cd" * 32)
        for other in ({}, {"npuw": "2"}, {"device": "NPU 2"})
    }
    assert len(seen) == 6


def test_stored_weights_depend_on_the_model_their_selection_and_versions() -> None:
    versions = {"npuw": "1", "device": "NPU 1"}
    seen = {
        weights_key(model, weights, versions | other).name
        for model in ("ab" * 32, "cd" * 32)
        for weights in ("ef" * 32, "01" * 32)
        for other in ({}, {"npuw": "2"}, {"device": "NPU 2"})
    }
    assert len(seen) == 12


@pytest.mark.parametrize("name", ["code.py", "platform.toml"])
def test_the_version_of_a_package_changes_with_its_sources(tmp_path, monkeypatch, name) -> None:
    """Data tables are sources, too: the costs of tasks affect tiling."""
    versions: list[str] = []
    for text in ("a = 1", "a = 2", "a = 1"):
        package = tmp_path / "some_package"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        (package / name).write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        package_version.cache_clear()
        versions.append(package_version("some_package"))
    package_version.cache_clear()
    assert versions[0] == versions[2] != versions[1]


def test_the_version_of_the_device_includes_the_compiler() -> None:
    version = LevelZeroDevice(StaticCompiler(), "4000").version
    compiler, abi = (package_version(name) for name in ("compiler_layer", "driver_layer.abi"))
    for part in (compiler, abi, "NPU 4000", "ELF 1.2", "MI 11.13"):
        assert part in version
    for device in (InterpreterDevice(), OpenVINODevice()):
        assert compiler in device.version
