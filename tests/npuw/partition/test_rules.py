"""What options cut out of models, and where it runs."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.errors import ModelError, NpuwFault, OptionError
from npuw_layer.options import parse_options

SMALL = {
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 64,
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "96,192",
    "INFERENCE_PRECISION_HINT": "f32",
}
PROMPT = np.arange(90) * 7 % 97


def story(talk) -> np.ndarray:
    """A prompt of two chunks, some steps into the next variant, and back; all logits."""
    said = [talk.tell(PROMPT)] + [talk.tell([token]) for token in (3, 14, 15, 9, 26, 5, 35)]
    return np.array([*said, talk.tell([8], back=4)])


@pytest.fixture(scope="module")
def whole(talks, tall) -> np.ndarray:
    return story(talks(tall, **SMALL))


@pytest.mark.parametrize(
    "options",
    [
        {"NPUW_ONLINE_PIPELINE": "REP"},
        {"NPUW_ONLINE_ISOLATE": "ATTN"},
        {"NPUW_ONLINE_ISOLATE": "P:RMSNorm/norm,Op:Swish/gate", "NPUW_ONLINE_NO_FOLD": "norm"},
        {"NPUW_ONLINE_AVOID": "P:RMSNorm/NPU,Op:Swish/NPU", "NPUW_DEVICES": "NPU,CPU"},
        {"NPUW_ONLINE_AVOID": "P:SDPA/CPU", "NPUW_DEVICES": "CPU,NPU"},
        {"NPUW_ONLINE_ISOLATE": "P:RoPE/rope", "NPUW_DEVICES": "CPU"},
    ],
    ids=lambda options: " ".join(f"{k.removeprefix('NPUW_')}={v}" for k, v in options.items()),
)
def test_however_a_model_is_cut_it_says_the_same(talks, tall, whole, options):
    said = story(talks(tall, **SMALL, **options))
    assert np.abs(said - whole).max() < 1e-5 * np.abs(whole).max()


def plan(path: Path) -> list[ET.Element]:
    return list(ET.parse(path).getroot().iter("group"))


def test_each_repeated_layer_is_a_submodel_and_compiled_once(tall, tmp_path):
    options = {"NPUW_ONLINE_PIPELINE": "REP", "NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    Core().compile_model(tall, "NPU", SMALL | options)
    groups = plan(tmp_path / "plan.prefill_64.xml")
    layers = [group for group in groups if group.get("tag") == "layer"]
    assert len(layers) == 7
    assert len({group.get("function") for group in layers}) == 1
    assert {len(group.findall("layer")) for group in layers} == {len(layers[0].findall("layer"))}


def test_tags_that_are_not_folded_are_compiled_one_by_one(tall, tmp_path):
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
    assert [len(functions[tag]) for tag in ("attn", "norm")] == [1, 15]
    types = {each.get("type") for g in groups if g.get("tag") == "attn" for each in g.iter("layer")}
    assert "ScaledDotProductAttention" in types


def test_a_model_that_is_not_cut_is_one_group_of_the_plan(tiny, tmp_path):
    target = tmp_path / "plan.xml"
    Core().compile_model(tiny, "NPU", SMALL | {"NPUW_ONLINE_DUMP_PLAN": str(target)})
    assert len(plan(tmp_path / "plan.generate_192.xml")) == 1
    assert len(plan(tmp_path / "plan.lm_head.xml")) == 1


def test_an_op_that_there_is_not_is_an_error_with_the_nearest_one(tiny):
    with pytest.raises(OptionError, match="no op 'Tanhh'; did you mean Tanh"):
        Core().compile_model(tiny, "NPU", SMALL | {"NPUW_ONLINE_ISOLATE": "Op:Tanhh/mine"})


def test_an_op_that_two_rules_claim_is_an_error_that_names_both(tall):
    both = {"NPUW_ONLINE_ISOLATE": "P:SDPA/one,Op:ScaledDotProductAttention/two"}
    with pytest.raises(
        ModelError, match="ScaledDotProductAttention is to be of 'one' and of 'two'"
    ):
        Core().compile_model(tall, "NPU", SMALL | both)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"NPUW_ONLINE_ISOLATE": "P:SDPA"}, "'P:SDPA' is no choice"),
        ({"NPUW_ONLINE_ISOLATE": "P:Softmax/x"}, "known are SDPA, RMSNorm, RoPE, DQMatMul"),
        ({"NPUW_ONLINE_AVOID": "ATTN"}, "'ATTN' is no choice"),
        ({"NPUW_ONLINE_PIPELINE": "SPATIAL"}, "not supported here: SPATIAL"),
        ({"NPUW_ONLINE_NO_FOLD": "x"}, "has no tag x"),
        ({"NPUW_ONLINE_PIPELINE": "REP", "NPUW_WEIGHTS_OFFLOAD": "SYNC"}, "in its own way"),
    ],
)
def test_options_that_say_nothing_sensible_are_refused(options, why):
    with pytest.raises(OptionError, match=why):
        parse_options(options)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"NPUW_ONLINE_AVOID": "P:SDPA/NPU"}, "nothing that takes over"),
        ({"NPUW_ONLINE_AVOID": "P:SDPA/GPU", "NPUW_DEVICES": "NPU,CPU"}, "has no GPU"),
        ({"NPUW_ONLINE_ISOLATE": "ATTN", "NPUW_DEVICES": "OPENVINO_CPU"}, "runs models whole"),
        ({"NPUW_ONLINE_PIPELINE": "REP", "NPUW_ONLINE_ISOLATE": "ATTN"}, "whole layers"),
    ],
)
def test_what_no_device_can_do_is_refused(tiny, options, why):
    with pytest.raises(OptionError, match=why):
        Core().compile_model(tiny, "NPU", SMALL | options)


def test_a_plan_that_cannot_be_written_is_an_error(tiny, tmp_path):
    target = tmp_path / "nowhere" / "plan.xml"
    options = {"NPUW_ONLINE_ISOLATE": "ATTN", "NPUW_ONLINE_DUMP_PLAN": str(target)}
    with pytest.raises(NpuwFault, match=r"NPUW_ONLINE_DUMP_PLAN: .*No such file"):
        Core().compile_model(tiny, "NPU", SMALL | options)
