"""Ops that options cut out of models, and their devices."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.conftest import write_tiny

from npuw_layer import Core
from npuw_layer.errors import ModelError, NpuwFault, OptionError
from npuw_layer.options import parse_options

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 64,
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
    "NPUW_LLM_GENERATE_PYRAMID": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
}
"""One prefill model, one generate model; test_partitioning.py tests variants."""
LAYERS = 5
"""Minimum equal layers that are worth a separate submodel by default."""
PROMPT = np.arange(90) * 7 % 97


def story(talk) -> np.ndarray:
    """Return all logits of a prompt of two chunks, some steps, and a rewind."""
    said = [talk.tell(PROMPT)] + [talk.tell([token]) for token in (3, 14, 15, 9, 26, 5, 35)]
    return np.array([*said, talk.tell([8], back=4)])


@pytest.fixture(scope="module")
def tall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tiny model with more layers."""
    return write_tiny(tmp_path_factory.mktemp("tall"), LAYERS)


@pytest.fixture(scope="module")
def whole(talks, tall) -> np.ndarray:
    return story(talks(tall, **SMALL))


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"NPUW_ONLINE_PIPELINE": "JUST", "NPUW_ONLINE_MIN_SIZE": "12"},
        {"NPUW_ONLINE_PIPELINE": "JUST", "NPUW_DEVICES": "CPU"},
        {"NPUW_ONLINE_PIPELINE": "REG"},
        {"NPUW_ONLINE_PIPELINE": "COMPUTE"},
        {"NPUW_ONLINE_ISOLATE": "ATTN", "NPUW_ONLINE_PIPELINE": "REP", "NPUW_FOLD_ONLY": "attn"},
        {"NPUW_ONLINE_ISOLATE": "P:RMSNorm/norm,Op:Swish/gate", "NPUW_ONLINE_NO_FOLD": "norm"},
        {"NPUW_ONLINE_AVOID": "P:RMSNorm/NPU,Op:Swish/NPU", "NPUW_DEVICES": "NPU,CPU"},
        {"NPUW_ONLINE_AVOID": "P:SDPA/CPU", "NPUW_DEVICES": "CPU,NPU"},
        {"NPUW_ONLINE_ISOLATE": "P:RoPE/rope", "NPUW_DEVICES": "CPU"},
    ],
    ids=lambda options: " ".join(f"{k.removeprefix('NPUW_')}={v}" for k, v in options.items()),
)
def test_cutting_a_model_does_not_change_its_results(talks, tall, whole, options):
    said = story(talks(tall, **SMALL, **options))
    assert np.abs(said - whole).max() < 1e-5 * np.abs(whole).max()


def plan(path: Path) -> list[ET.Element]:
    return list(ET.parse(path).getroot().iter("group"))


@pytest.mark.long
def test_each_repeated_layer_is_a_submodel_and_compiled_once(tall, tmp_path):
    options = {"NPUW_ONLINE_PIPELINE": "REP", "NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    Core().compile_model(tall, "NPU", SMALL | options)
    groups = plan(tmp_path / "plan.prefill_64.xml")
    layers = [group for group in groups if group.get("tag") == "layer"]
    assert len(layers) == LAYERS
    assert len({group.get("function") for group in layers}) == 1
    assert {len(group.findall("layer")) for group in layers} == {len(layers[0].findall("layer"))}


@pytest.mark.long
@pytest.mark.parametrize("least", [{"KEEP_BLOCKS": LAYERS + 1}, {"KEEP_BLOCK_SIZE": 99}])
def test_layers_that_are_too_few_or_too_small_are_not_isolated(tall, tmp_path, least):
    options = {f"NPUW_ONLINE_{name}": value for name, value in least.items()}
    dump = {"NPUW_ONLINE_PIPELINE": "REP", "NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    Core().compile_model(tall, "NPU", SMALL | dump | options)
    assert len(plan(tmp_path / "plan.generate_192.xml")) == 1


@pytest.mark.long
def test_ranges_have_the_requested_number_and_equal_ones_are_compiled_once(tall, tmp_path):
    options = {"NPUW_ONLINE_PIPELINE": "JUST", "NPUW_ONLINE_MIN_SIZE": 10}
    dump = {"NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    Core().compile_model(tall, "NPU", SMALL | options | dump)
    groups = [g for g in plan(tmp_path / "plan.generate_192.xml") if g.get("tag") == "stretch"]
    assert 7 < len(groups) <= 10
    assert len({group.get("function") for group in groups}) < len(groups)


@pytest.mark.long
def test_compute_is_cut_out_and_compiled_one_by_one(tall, tmp_path):
    options = {"NPUW_ONLINE_PIPELINE": "COMPUTE"}
    dump = {"NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    Core().compile_model(tall, "NPU", SMALL | options | dump)
    groups = [g for g in plan(tmp_path / "plan.generate_192.xml") if g.get("tag") == "compute"]
    assert len(groups) == len({group.get("function") for group in groups}) == 2 * LAYERS + 1


@pytest.fixture(scope="module")
def exported(load_module, tmp_path_factory) -> Callable[[str], Path]:
    """Return a Llama that the real exporter compressed."""
    folder = Path(__file__).resolve().parents[3] / "goldens" / "exported"
    restore = load_module(folder / "restore.py").restore
    return lambda name: restore(folder, name, tmp_path_factory.mktemp(name))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "pattern", "products"),
    [
        ("llama_int4", "DQMatMulGQi4", 14),
        ("llama_int4_asym", "DQMatMulGQu4", 14),
        ("llama_int4_channel", "DQMatMulCWi4", 14),
        ("llama_int8", "DQMatMul", 14),
        ("llama_int4", "DQMatMulCWi4", 0),
        ("llama_fp16", "DQMatMul", 0),
    ],
)
def test_matmuls_are_selected_by_the_compression_of_their_weights(
    exported, tmp_path, name: str, pattern: str, products: int
) -> None:
    """Two layers of seven matmuls; the LM head is a separate model."""
    options = {
        "NPUW_ONLINE_ISOLATE": f"P:{pattern}/products",
        "NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml"),
    }
    Core().compile_model(exported(name), "NPU", SMALL | options)
    groups = plan(tmp_path / "plan.generate_192.xml")
    assert sum(group.get("tag") == "products" for group in groups) == products


# Plans.

WRITERS = {
    "isolated": {"NPUW_ONLINE_ISOLATE": "P:SDPA/attn,P:RMSNorm/norm"},
    "stretches": {"NPUW_ONLINE_PIPELINE": "JUST"},
    "layers": {"NPUW_ONLINE_PIPELINE": "REP"},
    "ops": {"NPUW_ONLINE_PIPELINE": "INIT"},
    "avoided": {"NPUW_ONLINE_AVOID": "Op:Swish/NPU", "NPUW_DEVICES": "NPU,CPU"},
}


@pytest.mark.long
@pytest.mark.parametrize("writer", WRITERS)
def test_a_dumped_plan_can_be_read(talks, tall, whole, tmp_path, writer) -> None:
    """A plan of one static model applies to all, whatever ops they have between its layers."""
    options = WRITERS[writer]
    dump = {"NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    Core().compile_model(tall, "NPU", SMALL | options | dump)
    written = tmp_path / "plan.generate_192.xml"
    again = {"NPUW_PLAN": str(written), "NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "again.xml")}
    again |= {name: value for name, value in options.items() if name == "NPUW_DEVICES"}
    said = story(talks(tall, **SMALL, **again))
    assert np.abs(said - whole).max() < 1e-5 * np.abs(whole).max()
    named = {frozenset(layers(group)) for group in plan(written)}
    found = {frozenset(layers(group)) for group in plan(tmp_path / "again.generate_192.xml")}
    assert found - {frozenset()} == named - {frozenset()}
    avoided = [g for g in plan(tmp_path / "again.generate_192.xml") if g.get("avoid") == "NPU"]
    assert len(avoided) == (LAYERS if writer == "avoided" else 0)


def layers(group: ET.Element) -> set[tuple[str, str]]:
    """Return the layers of a group, except constants, which are copied to each user."""
    every = {(each.get("name", ""), each.get("type", "")) for each in group.iter("layer")}
    return {(name, kind) for name, kind in every if kind != "Constant"}


def write_group(path: Path, *names: str) -> dict[str, str]:
    """Write a plan of one group in NPUW's form: without types."""
    found = "".join(f'<layer name="{name}"/>' for name in names)
    path.write_text(
        f'<ensemble><partitioning><group id="0">{found}</group></partitioning></ensemble>'
    )
    return {"NPUW_PLAN": str(path)}


@pytest.mark.long
def test_a_changed_plan_file_is_another_cache_key(tiny, tmp_path) -> None:
    cache, target = {"CACHE_DIR": str(tmp_path / "cache")}, tmp_path / "plan.xml"
    for name, cached in (("model.norm", False), ("model.norm", True), ("lm_head", False)):
        options = SMALL | cache | write_group(target, name)
        compiled = Core().compile_model(tiny, "NPU", options)
        assert compiled.get_property("LOADED_FROM_CACHE") is cached


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file"),
        (b"", "not a plan: no element found"),
        (b"<ensemble>", "not a plan: no element found"),
        (b"<ensemble/>", "it has no <group>"),
        (b"<group><layer name='x'/></group>", "it has no <group>"),
        (b"<!DOCTYPE ensemble [<!ENTITY a 'b'>]><ensemble/>", "document type"),
        (b'<?xml version="1.0" encoding="nonsense"?><ensemble/>', "unknown encoding"),
    ],
)
def test_a_file_that_is_not_a_plan_is_rejected_with_its_path(tiny, tmp_path, content, why) -> None:
    path = tmp_path / "plan.xml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OptionError, match=f"NPUW_PLAN .*{why}"):
        Core().compile_model(tiny, "NPU", SMALL | {"NPUW_PLAN": str(path)})


def test_a_pipe_is_rejected_as_plan_without_waiting(tiny, tmp_path) -> None:
    path = tmp_path / "plan.xml"
    os.mkfifo(path)
    config = SMALL | {"NPUW_PLAN": str(path), "CACHE_DIR": str(tmp_path / "cache")}
    with pytest.raises(OptionError, match=r"NPUW_PLAN .*plan\.xml: not a regular file"):
        Core().compile_model(tiny, "NPU", config)


def test_a_plan_for_another_model_is_logged(tiny, tmp_path, caplog) -> None:
    Core().compile_model(tiny, "NPU", SMALL | write_group(tmp_path / "plan.xml", "nobody"))
    assert "NPUW_PLAN: a static model has none of the plan's layers" in caplog.text


def test_a_model_cut_by_a_plan_cannot_be_exported(tiny, tmp_path) -> None:
    options = SMALL | write_group(tmp_path / "plan.xml", "nobody") | {"EXPORT_BLOB": "YES"}
    with pytest.raises(OptionError, match="a blob cannot contain the plan's file"):
        Core().compile_model(tiny, "NPU", options)


@pytest.mark.long
def test_unfolded_tags_are_compiled_one_by_one(tall, tmp_path):
    options = {
        "NPUW_ONLINE_ISOLATE": "P:SDPA/attn,P:RMSNorm/norm",
        "NPUW_ONLINE_NO_FOLD": "norm",
        "NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml"),
    }
    Core().compile_model(tall, "NPU", SMALL | options)
    groups = plan(tmp_path / "plan.generate_192.xml")
    functions = {
        tag: {group.get("function") for group in groups if group.get("tag") == tag}
        for tag in ("attn", "norm")
    }
    assert [len(functions[tag]) for tag in ("attn", "norm")] == [1, 2 * LAYERS + 1]
    types = {each.get("type") for g in groups if g.get("tag") == "attn" for each in g.iter("layer")}
    assert "ScaledDotProductAttention" in types


@pytest.mark.long
@pytest.mark.parametrize(
    ("only", "once"), [("attn", ["attn"]), ("norm", ["norm"]), ("attn,norm", ["attn", "norm"])]
)
def test_only_submodels_of_fold_only_are_compiled_once(tall, tmp_path, only, once):
    options = {
        "NPUW_ONLINE_ISOLATE": "P:SDPA/attn,P:RMSNorm/norm",
        "NPUW_FOLD_ONLY": only,
        "NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml"),
    }
    Core().compile_model(tall, "NPU", SMALL | options)
    by_tag: dict[str, list[str]] = {}
    for group in plan(tmp_path / "plan.generate_192.xml"):
        by_tag.setdefault(group.get("tag", ""), []).append(group.get("function", ""))
    assert {len(found) for found in by_tag.values()} > {LAYERS, 2 * LAYERS + 1}
    for tag, found in by_tag.items():
        assert len({*found}) == (1 if tag in once else len(found)), tag


@pytest.mark.long
@pytest.mark.parametrize("pipeline", ["REP", "REG"])
def test_selected_ops_cut_the_layers_around_them(tall, tmp_path, pipeline):
    options = {"NPUW_ONLINE_ISOLATE": "ATTN", "NPUW_ONLINE_PIPELINE": pipeline}
    dump = {"NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    Core().compile_model(tall, "NPU", SMALL | options | dump)
    groups = plan(tmp_path / "plan.generate_192.xml")
    tags = [group.get("tag") for group in groups]
    assert tags.count("attn") == LAYERS
    assert "layer" not in tags
    between = [group.get("function") for group in groups if group.get("tag") != "attn"]
    assert len(between) == LAYERS + 1
    assert len({*between}) == 3, "before the first, between two, and after the last"


def test_an_uncut_model_is_one_group_of_the_plan(tiny, tmp_path):
    target = tmp_path / "plan.xml"
    Core().compile_model(tiny, "NPU", SMALL | {"NPUW_ONLINE_DUMP_PLAN": str(target)})
    assert len(plan(tmp_path / "plan.generate_192.xml")) == 1
    assert len(plan(tmp_path / "plan.lm_head.xml")) == 1


def test_an_unknown_op_is_an_error_that_suggests_the_nearest(tiny):
    with pytest.raises(OptionError, match="unknown op 'Tanhh'; did you mean Tanh"):
        Core().compile_model(tiny, "NPU", SMALL | {"NPUW_ONLINE_ISOLATE": "Op:Tanhh/mine"})


def test_an_op_of_two_rules_is_an_error_that_names_both(tall):
    both = {"NPUW_ONLINE_ISOLATE": "P:SDPA/one,Op:ScaledDotProductAttention/two"}
    with pytest.raises(ModelError, match="ScaledDotProductAttention is in parts 'one' and 'two'"):
        Core().compile_model(tall, "NPU", SMALL | both)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"NPUW_ONLINE_ISOLATE": "P:SDPA"}, "'P:SDPA' is not a choice"),
        ({"NPUW_ONLINE_ISOLATE": "P:Softmax/x"}, "use one of SDPA, RMSNorm, .*DQMatMulGQu4"),
        ({"NPUW_ONLINE_AVOID": "ATTN"}, "'ATTN' is not a choice"),
        ({"NPUW_ONLINE_NO_FOLD": "x"}, "no tag x in NPUW_ONLINE_ISOLATE"),
        ({"NPUW_FOLD_ONLY": "attn"}, "NPUW_FOLD_ONLY: no tag attn in NPUW_ONLINE_ISOLATE"),
        (
            {"NPUW_ONLINE_PIPELINE": "JUST", "NPUW_ONLINE_ISOLATE": "ATTN"},
            "cuts static models like",
        ),
        ({"NPUW_PLAN": "plan.xml", "NPUW_ONLINE_ISOLATE": "ATTN"}, "cuts static models like"),
        ({"NPUW_ATTN": "PYRAMID"}, "because NPUW_LLM_PREFILL_ATTENTION_HINT"),
        ({"NPUW_ONLINE_PIPELINE": "JUST", "NPUW_PLAN": "plan.xml"}, "cuts static models like"),
        ({"NPUW_ONLINE_PIPELINE": "REP", "NPUW_WEIGHTS_OFFLOAD": "SYNC"}, "cuts models itself"),
    ],
)
def test_contradictory_options_are_rejected(options, why):
    with pytest.raises(OptionError, match=why):
        parse_options(options)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"NPUW_ONLINE_AVOID": "P:SDPA/NPU"}, "no other device"),
        ({"NPUW_ONLINE_AVOID": "P:SDPA/GPU", "NPUW_DEVICES": "NPU,CPU"}, "has no GPU"),
        ({"NPUW_ONLINE_AVOID": "P:SDPA/NPU", "NPUW_DEVICES": "OPENVINO_CPU"}, "has no NPU"),
    ],
)
def test_groups_without_a_device_are_rejected(tiny, options, why):
    with pytest.raises(OptionError, match=why):
        Core().compile_model(tiny, "NPU", SMALL | options)


def test_a_plan_that_cannot_be_written_is_an_error(tiny, tmp_path):
    target = tmp_path / "nowhere" / "plan.xml"
    options = {"NPUW_ONLINE_ISOLATE": "ATTN", "NPUW_ONLINE_DUMP_PLAN": str(target)}
    with pytest.raises(NpuwFault, match=r"NPUW_ONLINE_DUMP_PLAN: .*No such file"):
        Core().compile_model(tiny, "NPU", SMALL | options)
