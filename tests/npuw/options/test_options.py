"""Options: each is described, checked with clear messages, and can be read back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from npuw_layer import Core
from npuw_layer.errors import OptionError
from npuw_layer.options import ABSENT, GROUPS, NAMES, describe, parse_options
from npuw_layer.options.base import PER_TOKEN
from npuw_layer.options.contradictions import WAITING, idle
from npuw_layer.options.mechanisms import WITHOUT_EFFECT

ORIGINALS = [
    "NPUW_LLM",
    "NPUW_LLM_BATCH_DIM",
    "NPUW_LLM_SEQ_LEN_DIM",
    "NPUW_LLM_MAX_PROMPT_LEN",
    "NPUW_LLM_MIN_RESPONSE_LEN",
    "NPUW_LLM_MAX_GENERATION_TOKEN_LEN",
    "NPUW_LLM_MAX_LORA_RANK",
    "NPUW_LLM_OPTIMIZE_V_TENSORS",
    "NPUW_LLM_OPTIMIZE_FP8",
    "NPUW_LLM_CACHE_ROPE",
    "NPUW_LLM_GENERATE_PYRAMID",
    "NPUW_LLM_PREFILL_CHUNK_SIZE",
    "NPUW_LLM_PREFILL_HINT",
    "NPUW_LLM_GENERATE_HINT",
    "NPUW_LLM_PREFILL_ATTENTION_HINT",
    "NPUW_LLM_GENERATE_ATTENTION_HINT",
    "NPUW_LLM_PREFILL_MOE_HINT",
    "NPUW_LLM_GENERATE_MOE_HINT",
    "NPUW_MOE_TOKEN_CHUNK_SIZE",
    "NPUW_MOE_POOL_SIZE",
    "NPUW_LLM_SHARED_HEAD",
    "NPUW_LLM_SHARED_HEAD_CONFIG",
    "++NPUW_LLM_SHARED_HEAD_CONFIG",
    "NPUW_LLM_PREFILL_CONFIG",
    "++NPUW_LLM_PREFILL_CONFIG",
    "NPUW_LLM_GENERATE_CONFIG",
    "++NPUW_LLM_GENERATE_CONFIG",
    "NPUW_LLM_ENABLE_PREFIX_CACHING",
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE",
    "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS",
    "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE",
    "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL",
    "NPUW_LLM_VOCAB_AS_INPUT",
]
"""Source: docs/reference/npuw.md#options."""


def test_every_llm_option_of_npuw_is_supported() -> None:
    assert set(ORIGINALS) <= set(NAMES)


ALIKE_IN_THE_ORIGINAL: dict[str, object] = {
    "NPUW_ONLINE_KEEP_BLOCKS_TAGGED": (),
    "NPUW_FUSE_UNFOLDED": False,
    "NPUW_CWAI": False,
    "NPUW_DQ": False,
    "NPU_COMPILER_DYNAMIC_QUANTIZATION": False,
    "NPU_ENABLE_STRIDES_FOR": (),
    "PERFORMANCE_HINT": "",
    "NPUW_DQ_FULL": True,
    "NPUW_PMM": "2",
    "NPUW_MM_GATED": True,
    "NPUW_SLICE_OUT": False,
    "NPUW_HOST_GATHER": True,
    "NPUW_F16IC": True,
    "NPUW_ATTN_DYN": True,
    "NPUW_ATTN_NO_COPY": False,
    "NPUW_ATTN_HFA_FUSED": False,
    "NPUW_ATTN_HFA_MASK_SKIPPING": False,
    "NPUW_DCOFF_TYPE": "",
    "NPUW_DCOFF_SCALE": False,
    "NPUW_FUNCALL_FOR_ALL": False,
    "NPUW_PARALLEL_COMPILE": False,
    "NPUW_FUNCALL_ASYNC": False,
    "NPUW_UNFOLD_IREQS": False,
    "NPUW_UNQDQ": False,
    "NPUW_LLM_VOCAB_AS_INPUT": False,
    "NPU_TURBO": False,
    "NPU_BYPASS_UMD_CACHING": False,
    "NPU_COMPILER_TYPE": "PREFER_PLUGIN",
    "NPU_DEFER_WEIGHTS_LOAD": False,
    "NUM_STREAMS": -1,
    "PERFORMANCE_HINT_NUM_REQUESTS": 1,
}
"""Options without effect here, with the defaults of OpenVINO's table."""


def test_options_without_effect_have_the_defaults_of_openvino() -> None:
    options = parse_options({})
    assert {*WITHOUT_EFFECT} == ALIKE_IN_THE_ORIGINAL.keys()
    for name, default in ALIKE_IN_THE_ORIGINAL.items():
        assert getattr(options, NAMES[name]) == default, name


def test_an_option_without_effect_can_be_read_back_and_is_logged(
    tiny: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="npuw_layer"):
        model = Core().compile_model(tiny, "NPU", {"NPUW_DQ": "YES", "NPUW_PMM": "NO"})
    assert model.get_property("NPUW_DQ") is True
    assert model.get_property("NPUW_PMM") == "NO"
    assert (
        "NPUW_DQ = YES has no effect: The device always computes with compressed weights"
        in caplog.text
    )
    assert "NPUW_PMM = NO has no effect" in caplog.text
    assert caplog.text.count("has no effect") == 2


@pytest.mark.parametrize("name", WAITING)
def test_an_option_that_requires_another_is_reported(name: str) -> None:
    """Setting the other option removes the message."""
    given = {
        "NPUW_LLM_GENERATE_PYRAMID_STEPS": {"NPUW_LLM_GENERATE_PYRAMID": "NO"},
        "NPUW_LLM_CACHE_ROPE": {"NPUW_LLM_ON_FULL": "SLIDE"},
        "NPUW_LLM_GENERATE_HINT": {"NPUW_FOLD": "NO"},
    }
    wanted = {
        "NPUW_LLM_GENERATE_PYRAMID_STEPS": {},
        "NPUW_LLM_CACHE_ROPE": {},
        "NPUW_LLM_GENERATE_HINT": {},
        "NPUW_LLM_SINK_TOKENS": {"NPUW_LLM_ON_FULL": "SLIDE"},
        "NPUW_WEIGHTS_BUDGET": {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"},
        "NPUW_WEIGHTS_RESERVED": {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"},
        "NPUW_ACC_THRESH": {"NPUW_ACC_CHECK": "YES"},
        "NPUW_ACC_DEVICE": {"NPUW_ACC_CHECK": "YES"},
    }
    by_prefix = {
        "NPUW_LLM_PREFIX_CACHING": {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"},
        "NPUW_WHISPER": {"NPUW_WHISPER": "YES"},
        "NPUW_KOKORO": {"NPUW_KOKORO": "YES"},
        "NPUW_PA_": {"NPUW_PA": "YES"},
    }
    default = getattr(parse_options({}), NAMES[name])
    alone = parse_options({name: default, **given.get(name, {})})
    told = [*idle(alone)]
    assert len(told) == 1
    assert told[0].startswith(f"{name} = ")
    assert "has no effect: it requires " in told[0]
    assert [*idle(parse_options(given.get(name, {})))] == [], "an unset option is not reported"
    others = [both for prefix, both in by_prefix.items() if name.startswith(prefix)]
    asked = wanted[name] if name in wanted else others[0]
    assert [*idle(parse_options({name: default, **asked}))] == []


@pytest.mark.parametrize(
    ("hint", "fold", "told"),
    [
        ("BEST_PERF", {"NPUW_FOLD": "YES"}, True),
        ("BEST_PERF", {"NPUW_FOLD": "NO"}, False),
        ("BEST_PERF", {"++NPUW_LLM_GENERATE_CONFIG": {"NPUW_FOLD": "YES"}}, True),
        ("BEST_PERF", {"++NPUW_LLM_PREFILL_CONFIG": {"NPUW_FOLD": "YES"}}, False),
        ("FAST_COMPILE", {"NPUW_FOLD": "NO"}, True),
    ],
)
def test_an_overridden_hint_is_reported(hint: str, fold: dict[str, Any], told: bool) -> None:
    found = [*idle(parse_options({"NPUW_LLM_GENERATE_HINT": hint, **fold}))]
    start = f"NPUW_LLM_GENERATE_HINT = {hint} has no effect: "
    assert [(one.startswith(start), "NPUW_FOLD" in one) for one in found] == [(True, True)] * told


def test_a_stage_may_have_options_without_effect() -> None:
    options = parse_options({"++NPUW_LLM_PREFILL_CONFIG": {"NPUW_DQ": "YES", "NPU_TILES": 1}})
    assert options.of_stage("prefill").tiles == 1
    with pytest.raises(OptionError, match="NPUW_DCOFF_TYPE = 'f8': must be empty, i8 or f16"):
        parse_options({"NPUW_LLM_GENERATE_CONFIG": {"NPUW_DCOFF_TYPE": "f8"}})


def test_unsupported_options_of_openvino_are_rejected_with_the_reason() -> None:
    assert not ABSENT.keys() & NAMES.keys()
    assert all(name.startswith(("NPUW_", "NPU_")) for name in ABSENT)
    with pytest.raises(OptionError, match="MODE_PARAMS is not supported: it configures"):
        parse_options({"NPU_COMPILATION_MODE_PARAMS": "optimization-level=3"})
    with pytest.raises(OptionError, match="HANDLE_PROVIDER is not supported: use WEIGHTS_PATH"):
        parse_options({"NPUW_WEIGHTS_HANDLE_PROVIDER": "x"})


def test_every_option_is_described_in_one_group() -> None:
    described = describe()
    assert [one.name for one in described] == list(NAMES)
    assert len(set(NAMES.values())) == len(NAMES)
    assert [group.title for group in GROUPS] == list(dict.fromkeys(one.group for one in described))
    for one in described:
        assert one.effect.endswith("."), one.name
        assert one.type, one.name
        assert one.allowed, one.name


def test_a_description_has_the_allowed_values_and_the_source() -> None:
    by_name = {one.name: one for one in describe()}
    lengths = by_name["NPUW_LLM_MAX_GENERATION_TOKEN_LEN"]
    assert (lengths.type, lengths.default) == ("integer", "1")
    assert lengths.allowed == "an integer from 1 to 1,024"
    assert by_name["NPUW_LLM_PREFILL_HINT"].allowed == "DYNAMIC or STATIC"
    assert by_name["NPUW_LLM_PREFILL_HINT"].source == "NPUW"
    assert by_name["NPUW_LLM_ON_FULL"].source == "this project"
    assert by_name["CACHE_DIR"].source == "OpenVINO"
    assert by_name["NPUW_LLM_PREFILL_MOE_HINT"].allowed.startswith("DENSE or HOST_ROUTED, because")


def test_the_cost_of_hfa_in_decoding_is_described() -> None:
    by_name = {one.name: one for one in describe()}
    assert "halves the tokens" in by_name["NPUW_LLM_GENERATE_ATTENTION_HINT"].effect


def test_a_description_distinguishes_unset_from_empty() -> None:
    by_name = {one.name: one for one in describe()}
    unset = {name for name, one in by_name.items() if one.default is None}
    assert unset == {"NPU_USE_NPUW", "NPUW_LLM", "ENABLE_WEIGHTLESS"}
    assert all("if unset, " in by_name[name].effect for name in unset)
    assert by_name["CACHE_DIR"].default == ""


def test_defaults_are_allowed_values() -> None:
    options = parse_options({})
    again = parse_options({name: getattr(options, field) for name, field in _settable().items()})
    assert again == options


def _settable() -> dict[str, str]:
    """Return all options except one of two that exclude each other."""
    return {name: field for name, field in NAMES.items() if name != "NPUW_LLM_GENERATE_CONFIG"}


REFUSED = [
    ({"NPUW_LLM_MAX_PROMPT_LENGTH": 3}, "did you mean NPUW_LLM_MAX_PROMPT_LEN?"),
    ({"npuw_devices": "NPU"}, "did you mean NPUW_DEVICES?"),
    ({"NPUW_LLM_MAX_PROMPT_LEN": 0}, "must be an integer from 1 to 1,048,576"),
    ({"NPUW_LLM_MAX_PROMPT_LEN": 1.5}, "must be an integer from 1"),
    ({"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 1025}, "an integer from 1 to 1,024"),
    ({"NPUW_LLM_SINK_TOKENS": -1}, "an integer from 0"),
    ({"NPUW_LLM_ON_FULL": "STOP"}, "must be ERROR, TRUNCATE or SLIDE"),
    ({"NPUW_LLM_KV_SWITCHOVER": 0}, "must be ZERO_COPY or COPY"),
    ({"NPUW_LLM_GENERATE_PYRAMID_STEPS": "a,b"}, "must be integers separated by commas"),
    ({"NPUW_LLM_ENABLE_PREFIX_CACHING": "MAYBE"}, "must be YES or NO"),
    ({"CACHE_DIR": None}, "must be text"),
    ({"CACHE_DIR": "a\0b"}, "must be text without null characters"),
    ({"CACHE_DIR": "~no such user/x"}, "begins with ~ and an unknown user"),
    ({"NPUW_PLAN": "a\0b"}, "NPUW_PLAN = 'a\\x00b': must be text without null characters"),
    ({"NPUW_DUMP_SUBS_DIR": "\ud800"}, "must be text that UTF-8 can encode"),
    (
        {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA", "NPUW_WEIGHTS_OFFLOAD": "ASYNC"},
        "HFA cuts models, as NPUW_WEIGHTS_OFFLOAD does; set NPUW_WEIGHTS_OFFLOAD to NO",
    ),
    (
        {"NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA", "NPUW_LLM_BATCH_SLOTS": "1,4"},
        "HFA supports one conversation at a time; set NPUW_LLM_BATCH_SLOTS to 1",
    ),
    (
        {"NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA", "NPUW_ONLINE_ISOLATE": "ATTN"},
        "HFA cuts models itself; leave the options NPUW_ONLINE_… at their defaults",
    ),
    (
        {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA", "NPUW_PLAN": "plan.xml"},
        "HFA cuts models itself; leave NPUW_PLAN out",
    ),
    (
        {"NPUW_WEIGHTS_OFFLOAD": "SYNC", "NPUW_PLAN": "plan.xml"},
        "NPUW_WEIGHTS_OFFLOAD: SYNC cuts models itself; leave NPUW_PLAN out",
    ),
    (
        {"NPUW_LLM_GENERATE_ATTENTION_HINT": "DYNAMIC"},
        "DYNAMIC has dynamic shapes, which programs of NPU and OPENVINO_CPU cannot have; "
        "add CPU to NPUW_DEVICES, or use HFA",
    ),
    (
        {"NPUW_LLM_PREFILL_ATTENTION_HINT": "DYNAMIC", "NPUW_DEVICES": "NPU,OPENVINO_CPU"},
        "add CPU to NPUW_DEVICES, or use HFA",
    ),
    ({"NPU_TILES": 9}, "NPU_TILES: 9 tiles; platform 4000 has 6"),
    ({"NPU_TILES": 3, "NPU_PLATFORM": "3720"}, "NPU_TILES: 3 tiles; platform 3720 has 2"),
    (
        {"++NPUW_LLM_GENERATE_CONFIG": {"NPU_TILES": 9}},
        "++NPUW_LLM_GENERATE_CONFIG: NPU_TILES: 9 tiles; platform 4000 has 6",
    ),
    ({"NPU_PLATFORM": "none.toml"}, "NPU_PLATFORM: none.toml: No such file"),
    ({"NPUW_DEVICES": ""}, "NPUW_DEVICES = '': name each device once"),
    ({"NPUW_DEVICES": "CPU,NPU,CPU"}, "NPUW_DEVICES = 'CPU,NPU,CPU': name each device once"),
    ({"NPUW_SUBMODEL_DEVICE": "0"}, "NPUW_SUBMODEL_DEVICE = '0': '0' is not a pin; write"),
    ({"NPUW_SUBMODEL_DEVICE": "0:"}, "NPUW_SUBMODEL_DEVICE = '0:': '0:' is not a pin; write"),
    (
        {"NPUW_ONLINE_ISOLATE": "P:SDPA/attn,Op:Tanhh/mine"},
        "NPUW_ONLINE_ISOLATE = 'P:SDPA/attn,Op:Tanhh/mine': unknown op 'Tanhh'; did you mean Tanh?",
    ),
    ({"NPUW_ONLINE_AVOID": "Op:Nothing/NPU"}, "NPUW_ONLINE_AVOID = 'Op:Nothing/NPU': unknown op"),
    *(
        ({"NPUW_LLM_GENERATE_PYRAMID_STEPS": steps}, "capacities must be 2 or more, and ascend")
        for steps in ("512,256", "256,256", "1,512", "-1")
    ),
    ({"NPUW_LLM_PREFILL_CONFIG": "{"}, "must be a map of options"),
    ({"NPUW_LLM_PREFILL_CONFIG": [1]}, "must be a map of options"),
    ({"NPUW_LLM_PREFILL_CONFIG": "[" * 10**6}, "must be a map of options"),
]


@pytest.mark.parametrize(("config", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_a_wrong_value_is_rejected_with_the_allowed_values(config: Any, says: str) -> None:
    with pytest.raises(OptionError, match=re.escape(says)) as caught:
        parse_options(config)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NPUW_LLM_PREFILL_MOE_HINT", "DEVICE_ROUTED"),
        *(("DYNAMIC_QUANTIZATION_GROUP_SIZE", size) for size in (1, 32, "128", 1 << 20, 1 << 64)),
    ],
)
def test_unsupported_values_are_rejected(name: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"{name} = .*not supported here: {value}, because "):
        parse_options({name: value})


@pytest.mark.parametrize("value", [-1, "-1", PER_TOKEN, str(PER_TOKEN)])
def test_one_group_per_token_is_read_back_as_its_number(value: object) -> None:
    options = parse_options({"DYNAMIC_QUANTIZATION_GROUP_SIZE": value})
    assert options.dynamic_quantization_group_size == PER_TOKEN
    assert options.compiler_config()["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == str(PER_TOKEN)


@pytest.mark.parametrize("hint", ["HFA", "DYNAMIC"])
@pytest.mark.parametrize("stage", ["PREFILL", "GENERATE"])
def test_isolated_attention_does_not_transpose_v(stage: str, hint: str) -> None:
    asked = {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES", "NPUW_DEVICES": "NPU,CPU"}
    assert parse_options(asked).transposes_values
    options = parse_options({**asked, f"NPUW_LLM_{stage}_ATTENTION_HINT": hint})
    assert not options.transposes_values
    assert options.optimize_v_tensors, "the option is read back as set"


@pytest.mark.parametrize("stage", ["PREFILL", "GENERATE"])
def test_no_device_takes_over_models_with_dynamic_attention(stage: str) -> None:
    """Source: docs/reference/npuw.md#stage-options."""
    hint = f"NPUW_LLM_{stage}_ATTENTION_HINT"
    assert parse_options({hint: "HFA"}).falls_back
    assert not parse_options({hint: "HFA", "NPUW_FALLBACK_EXEC": "NO"}).falls_back
    dynamic = {hint: "DYNAMIC", "NPUW_DEVICES": "NPU,CPU", "NPUW_FALLBACK_EXEC": "YES"}
    assert not parse_options(dynamic).falls_back


class TestStages:
    """PREFILL_CONFIG and similar maps: docs/reference/npuw.md#stage-options."""

    def test_options_of_all_models_override_a_map_and_plus_plus_overrides_them(self) -> None:
        options = parse_options(
            {
                "NPUW_LLM_PREFILL_CONFIG": {"NPU_TILES": 2, "NPUW_FOLD": "NO"},
                "++NPUW_LLM_PREFILL_CONFIG": {"ENABLE_WEIGHTLESS": "NO"},
                "NPU_TILES": 3,
            }
        )
        prefill, generate = options.of_stage("prefill"), options.of_stage("generate")
        assert (prefill.tiles, prefill.fold, prefill.weightless) == (3, False, False)
        assert (generate.tiles, generate.fold, generate.weightless) == (3, True, True)
        options = parse_options({"NPU_TILES": 3, "++NPUW_LLM_PREFILL_CONFIG": '{"NPU_TILES": 1}'})
        assert options.of_stage("prefill").tiles == 1
        assert options.of_stage("head").tiles == 3

    def test_a_hint_sets_defaults_of_its_stage_only(self) -> None:
        options = parse_options({"NPUW_LLM_GENERATE_HINT": "BEST_PERF"})
        assert not options.of_stage("generate").fold
        assert options.of_stage("prefill").fold
        options = parse_options({"NPUW_LLM_GENERATE_HINT": "BEST_PERF", "NPUW_FOLD": "YES"})
        assert options.of_stage("generate").fold, "options of all models override the hint"

    def test_a_hint_and_a_map_of_its_stage_exclude_each_other(self) -> None:
        both = {"NPUW_LLM_GENERATE_HINT": "FAST_COMPILE", "NPUW_LLM_GENERATE_CONFIG": {}}
        with pytest.raises(OptionError, match="leave one of them out"):
            parse_options(both)
        parse_options(
            {"NPUW_LLM_GENERATE_HINT": "BEST_PERF", "++NPUW_LLM_GENERATE_CONFIG": {"NPU_TILES": 1}}
        )

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"NPU_TILE": 2}, "unknown option 'NPU_TILE'; did you mean NPU_TILES?"),
            ({"NPU_TILES": -2}, "NPU_TILES = -2: must be an integer from -1"),
            ({"DYNAMIC_QUANTIZATION_GROUP_SIZE": 32}, "not supported here: 32, because groups"),
            ({"NPU_PLATFORM": "3720"}, "NPU_PLATFORM cannot differ between stages"),
            ({"NPUW_LLM_PREFILL_CONFIG": {}}, "a map cannot contain maps"),
            ({"NPUW_LLM_MAX_PROMPT_LEN": 64}, "it determines the set of stages"),
            ({"KV_CACHE_PRECISION": "i8"}, "stages pass K, V and hidden states to one another"),
            ({"INFERENCE_PRECISION_HINT": "f32"}, "stages pass K, V and hidden states"),
            ({"CACHE_DIR": "x"}, "it applies to the complete model; a stage can have NPUW_DEVICES"),
            ({"NPUW_ONLINE_ISOLATE": "P:x/y"}, "unknown pattern 'x'"),
            (
                {"NPUW_SPATIAL": "YES"},
                "nothing is isolated with the tag compute, which runs in tiles",
            ),
        ],
    )
    def test_a_map_is_checked_like_options(self, given: Any, says: str) -> None:
        name = "++NPUW_LLM_GENERATE_CONFIG"
        with pytest.raises(OptionError, match=re.escape(f"{name}: ") + ".*" + re.escape(says)):
            parse_options({name: given})

    def test_options_of_a_stage_are_checked_together_with_those_of_all_models(self) -> None:
        """Options of a map may require options of all models, or contradict them."""
        spatial = {"++NPUW_LLM_PREFILL_CONFIG": {"NPUW_SPATIAL": "YES"}}
        parse_options(spatial | {"NPUW_ONLINE_ISOLATE": "COMPUTE"})
        layers = {"++NPUW_LLM_GENERATE_CONFIG": {"NPUW_ONLINE_PIPELINE": "REP"}}
        parse_options(layers | {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA"})
        with pytest.raises(OptionError, match=r"GENERATE_CONFIG: NPUW_LLM_GENERATE_.* HFA cuts"):
            parse_options(layers | {"NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA"})
        with pytest.raises(OptionError, match=r"GENERATE_CONFIG: NPUW_WEIGHTS_OFFLOAD: SYNC cuts"):
            parse_options(layers | {"NPUW_WEIGHTS_OFFLOAD": "SYNC"})

    def test_dynamic_attention_needs_the_cpu_in_its_own_stage(self) -> None:
        dynamic = {"NPUW_LLM_PREFILL_ATTENTION_HINT": "DYNAMIC"}
        both = {"NPUW_DEVICES": "NPU,CPU"}
        parse_options(dynamic | {"++NPUW_LLM_PREFILL_CONFIG": both})
        with pytest.raises(OptionError, match="add CPU to NPUW_DEVICES"):
            parse_options(dynamic | {"++NPUW_LLM_GENERATE_CONFIG": both})


GIVEN = {
    "NPUW_LLM_MAX_PROMPT_LEN": 100,
    "NPUW_LLM_MIN_RESPONSE_LEN": 10,
    "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 1,
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": (192,),
    "NPUW_LLM_PREFILL_CONFIG": {"NPU_TILES": 2},
    "++NPUW_LLM_SHARED_HEAD_CONFIG": {},
    "INFERENCE_PRECISION_HINT": "f32",
}


def test_every_option_can_be_read_back_as_it_was_set(tiny: Path) -> None:
    compiled = Core().compile_model(tiny, "NPU", GIVEN)
    supported = compiled.get_property("SUPPORTED_PROPERTIES")
    assert set(NAMES) | {"LOADED_FROM_CACHE"} <= set(supported)
    # The model decides between NPUW and the NPU itself.
    expected = parse_options(GIVEN | {"NPU_USE_NPUW": "YES", "NPUW_LLM": "YES"})
    for name in supported:
        found = compiled.get_property(name)
        if name in NAMES:
            assert found == getattr(expected, NAMES[name]), name
        if name in GIVEN:
            assert found == GIVEN[name], name
    with pytest.raises(OptionError, match="did you mean SUPPORTED_PROPERTIES"):
        compiled.get_property("SUPPORTED_PROPERTY")


def test_changing_a_returned_value_has_no_effect(tiny: Path) -> None:
    compiled = Core().compile_model(tiny, "NPU", GIVEN)
    compiled.get_property("NPUW_LLM_PREFILL_CONFIG")["NPU_TILES"] = 7
    assert compiled.get_property("NPUW_LLM_PREFILL_CONFIG") == {"NPU_TILES": 2}
