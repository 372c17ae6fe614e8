"""Stages with separate devices, or with separate partitioning.

Source: docs/reference/npuw.md#stage-options.

The tests compare the reported devices, the origin of programs, and the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.level_zero_memory import DeviceMemory
from npuw_layer.errors import DeviceError, OptionError
from npuw_layer.execution.devices.staged import StagedDevice

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "INFERENCE_PRECISION_HINT": "f32",
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "96",
}
PREFILL, GENERATE, HEAD = (
    f"++NPUW_LLM_{stage}_CONFIG" for stage in ("PREFILL", "GENERATE", "SHARED_HEAD")
)


def chat(folder: Path, **options: Any) -> Any:
    return Core().compile_model(folder, "NPU", SMALL | options).create_infer_request()


def tell(request: Any, ids: list[int], past: int) -> np.ndarray:
    total = past + len(ids)
    inputs = {
        "input_ids": np.array([ids]),
        "attention_mask": np.ones((1, total), np.int64),
        "position_ids": np.arange(past, total)[None],
    }
    return request.infer(inputs)["logits"][0, -1].copy()


def say(request: Any, tokens: int = 80) -> list[int]:
    """Return the answer to a fixed prompt, through both generate variants."""
    ids, past, said = list(range(1, 20)), 0, []
    for _ in range(tokens):
        said.append(int(tell(request, ids, past).argmax()))
        past += len(ids)
        ids = said[-1:]
    return said


def devices_of(request: Any) -> dict[str, str]:
    """Return the device of each static model, from the report."""
    begin = "device of "
    report = request.execution_report()
    return {key.removeprefix(begin): report[key] for key in report if key.startswith(begin)}


@pytest.fixture(scope="module")
def answer(tiny: Path) -> list[int]:
    """Return the interpreter's answer."""
    return say(chat(tiny, NPUW_DEVICES="CPU"))


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "prefill", "generate", "head"),
    [
        ({GENERATE: {"NPUW_DEVICES": "CPU"}}, "NPU", "CPU", "NPU"),
        ({PREFILL: {"NPUW_DEVICES": "OPENVINO_CPU"}}, "OPENVINO_CPU", "NPU", "NPU"),
        ({HEAD: {"NPUW_DEVICES": "CPU"}, "NPUW_DEVICES": "NPU,CPU"}, "NPU", "NPU", "CPU"),
        (
            {
                PREFILL: {"NPUW_DEVICES": "NPU"},
                GENERATE: {"NPUW_DEVICES": "OPENVINO_CPU"},
                "NPUW_DEVICES": "CPU",
            },
            "NPU",
            "OPENVINO_CPU",
            "CPU",
        ),
        (
            {
                "NPUW_DEVICES": "NPU,CPU",
                "NPUW_SUBMODEL_DEVICE": "0:CPU",
                GENERATE: {"NPUW_DEVICES": "NPU"},
            },
            "CPU",
            "NPU",
            "NPU",
        ),
    ],
)
def test_each_stage_runs_on_its_own_devices(
    tiny: Path, answer: list[int], options: dict[str, Any], prefill: str, generate: str, head: str
) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL | options)
    request = compiled.create_infer_request()
    assert devices_of(request) == {
        "prefill_64": prefill,
        "generate_96": generate,
        "generate_128": generate,
        "lm_head": head,
    }
    assert {*compiled.get_property("EXECUTION_DEVICES")} == {prefill, generate, head}
    assert say(request) == answer


def test_a_map_pins_submodels_of_its_stage(tiny: Path, answer: list[int]) -> None:
    own = {"NPUW_DEVICES": "NPU,CPU", "NPUW_SUBMODEL_DEVICE": "generate_128:CPU"}
    request = chat(tiny, **{GENERATE: own})
    found = devices_of(request)
    assert (found["generate_96"], found["generate_128"]) == ("NPU", "CPU")
    assert say(request) == answer
    with pytest.raises(OptionError, match="'CPU' is not in NPUW_DEVICES = NPU"):
        chat(tiny, **{GENERATE: {"NPUW_SUBMODEL_DEVICE": "generate_128:CPU"}})


@pytest.mark.long
def test_a_single_stage_can_be_compared_with_a_reference(tiny: Path, answer: list[int]) -> None:
    request = chat(tiny, **{GENERATE: {"NPUW_ACC_CHECK": "YES", "NPUW_ACC_THRESH": 1e-3}})
    assert say(request) == answer
    found = devices_of(request)
    assert found["prefill_64"] == found["lm_head"] == "NPU"
    assert "largest NRMSE" in found["generate_96"]
    strict = chat(tiny, **{GENERATE: {"NPUW_ACC_CHECK": "YES", "NPUW_ACC_THRESH": 0.0}})
    assert say(strict) == answer
    assert devices_of(strict)["generate_96"].startswith("CPU; NPU is inaccurate")


@pytest.mark.long
def test_fallback_is_an_option_of_each_stage(
    tiny: Path, answer: list[int], load_module: Callable[[Path], Any], monkeypatch: Any
) -> None:
    """NPUW_FALLBACK_EXEC of the stage decides, whatever other stages have."""
    faulty = load_module(Path(__file__).parents[2] / "faulty_device.py").FaultyDevice
    from npuw_layer.execution.devices import make

    found = make.plugin

    def lost(*_: Any) -> Any:
        return faulty(InterpreterDevice(), good_runs=2)

    def plugin(group: str, option: str, name: str) -> Any:
        return lost if name == "OPENVINO_CPU" else found(group, option, name)

    monkeypatch.setattr(make, "plugin", plugin)
    own = {"NPUW_DEVICES": "OPENVINO_CPU,CPU"}
    assert say(chat(tiny, **{GENERATE: own})) == answer
    with pytest.raises(DeviceError, match="DEVICE_LOST"):
        say(chat(tiny, **{GENERATE: own | {"NPUW_FALLBACK_EXEC": "NO"}}))


@pytest.mark.matrix
@pytest.mark.parametrize(
    "own",
    [
        {"NPUW_ONLINE_PIPELINE": "INIT"},
        {"NPUW_ONLINE_ISOLATE": "ATTN", "NPUW_FOLD_ONLY": "attn"},
        {"NPUW_ONLINE_AVOID": "P:RMSNorm/NPU", "NPUW_DEVICES": "NPU,CPU"},
        {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_SPATIAL_NWAY": 16},
    ],
    ids=lambda own: " ".join(map(str, own.values())),
)
def test_a_single_stage_can_be_cut(tiny: Path, answer: list[int], tmp_path: Path, own: Any) -> None:
    dump = {"NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    request = chat(tiny, **{PREFILL: own | dump})
    assert [file.name for file in tmp_path.iterdir()] == ["plan.prefill_64.xml"]
    assert (tmp_path / "plan.prefill_64.xml").read_text().count("<group ") > 1
    assert say(request) == answer


@pytest.mark.long
def test_layers_are_submodels_of_one_stage(tall: Path, tmp_path: Path) -> None:
    """Prefill is cut into layers, generate models are not cut."""
    own = {"NPUW_ONLINE_PIPELINE": "REP"}
    dump = {"NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    request = chat(tall, **{PREFILL: own}, **dump)
    plans = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert plans.pop("plan.prefill_64.xml").count('tag="layer"') == 7
    assert all(text.count("<group ") == 1 for text in plans.values())
    assert say(request, 30) == say(chat(tall), 30)


@pytest.mark.long
def test_a_plan_applies_only_to_its_stage(tiny: Path, answer: list[int], tmp_path: Path) -> None:
    dump = {"NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    chat(tiny, NPUW_ONLINE_PIPELINE="INIT", **dump)
    again = {"NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "again.xml")}
    planned = {"NPUW_PLAN": str(tmp_path / "plan.prefill_64.xml")}
    assert say(chat(tiny, **{PREFILL: planned}, **again)) == answer
    parts = {file.name: file.read_text().count("<group ") for file in tmp_path.glob("again.*.xml")}
    assert parts.pop("again.prefill_64.xml") > 1
    assert {*parts.values()} == {1}


def test_tensors_of_a_single_stage_can_be_dumped(tiny: Path, tmp_path: Path) -> None:
    own = {"NPUW_DUMP_IO": "YES", "NPUW_DUMP_SUBS": "YES", "NPUW_DUMP_SUBS_DIR": str(tmp_path)}
    say(chat(tiny, **{GENERATE: own}), 3)
    begins = {file.name.partition("_")[0] for file in tmp_path.iterdir()}
    assert begins == {"generate"}
    assert {file.suffix for file in tmp_path.iterdir()} == {".xml", ".bin", ".txt"}


def test_urgency_applies_to_the_stage_on_the_npu(tiny: Path, answer: list[int]) -> None:
    on_cpu = {GENERATE: {"NPUW_DEVICES": "CPU"}}
    assert say(chat(tiny, MODEL_PRIORITY="HIGH", **on_cpu)) == answer
    with pytest.raises(OptionError, match="MODEL_PRIORITY"):
        chat(
            tiny, MODEL_PRIORITY="HIGH", NPUW_DEVICES="CPU", **{GENERATE: {"NPUW_ACC_CHECK": "YES"}}
        )


@pytest.mark.long
def test_cache_keys_include_options_of_stages(
    tiny: Path, answer: list[int], tmp_path: Path
) -> None:
    def again(own: dict[str, Any]) -> tuple[int, int]:
        compiled = Core().compile_model(
            tiny, "NPU", SMALL | {"CACHE_DIR": str(tmp_path), GENERATE: own}
        )
        assert say(compiled.create_infer_request(), 20) == answer[:20]
        origin = compiled._compiled.origin
        return origin.compiled, origin.cached

    assert again({"NPUW_DEVICES": "CPU"}) == (4, 0)
    assert again({"NPUW_DEVICES": "CPU"}) == (0, 4)
    assert again({"NPUW_DEVICES": "CPU", "NPUW_FALLBACK_EXEC": "NO"}) == (0, 4)
    assert again({"NPUW_DEVICES": "OPENVINO_CPU"}) == (2, 2)
    assert again({}) == (4, 0), "programs of separate stages include their device"


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def test_stages_with_separate_partitioning_are_exported_and_imported(
    tiny: Path, answer: list[int], mode: str
) -> None:
    own = {"NPUW_ONLINE_PIPELINE": "INIT"}
    of_run = {"NPUW_DUMP_SUBS": "NO"}
    options = {PREFILL: own | of_run, "CACHE_MODE": mode}
    blob = Core().compile_model(tiny, "NPU", SMALL | options).export_model()
    imported = Core().import_model(blob, "NPU", {"WEIGHTS_PATH": str(tiny)})
    assert imported.get_property(PREFILL) == own, "run-time options do not come from the blob"
    assert say(imported.create_infer_request()) == answer
    given = {"WEIGHTS_PATH": str(tiny), PREFILL: own | {"NPUW_FALLBACK_EXEC": "NO"}}
    imported = Core().import_model(blob, "NPU", given)
    assert imported.get_property(PREFILL) == own | {"NPUW_FALLBACK_EXEC": "NO"}
    with pytest.raises(OptionError, match=r"contradict \+\+NPUW_LLM_PREFILL"):
        Core().import_model(blob, "NPU", given | {PREFILL: {"NPUW_ONLINE_PIPELINE": "JUST"}})


def test_run_time_options_of_a_stage_may_differ(
    tiny: Path, answer: list[int], tmp_path: Path
) -> None:
    blob = Core().compile_model(tiny, "NPU", SMALL).export_model()
    own = {"NPUW_DUMP_IO": "YES", "NPUW_DUMP_SUBS_DIR": str(tmp_path)}
    imported = Core().import_model(blob, "NPU", {"WEIGHTS_PATH": str(tiny), GENERATE: own})
    assert say(imported.create_infer_request()) == answer
    assert {file.name.partition("_")[0] for file in tmp_path.iterdir()} == {"generate"}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"NPUW_DEVICES": "CPU"}, "NPUW_DEVICES = 'NPU' and 'CPU': its programs name files"),
        ({"NPUW_ACC_CHECK": "YES"}, "NPUW_ACC_CHECK = YES: comparing devices"),
    ],
)
def test_options_of_a_stage_may_prevent_an_export(
    tiny: Path, own: dict[str, str], why: str
) -> None:
    with pytest.raises(OptionError, match=why):
        Core().compile_model(tiny, "NPU", SMALL | {GENERATE: own}).export_model()


def npu() -> LevelZeroDevice:
    return LevelZeroDevice(StaticCompiler(), "4000")


def test_only_one_stage_may_need_its_own_memory() -> None:
    with pytest.raises(DeviceError, match="each need their own memory"):
        StagedDevice({"prefill": npu(), "generate": npu(), "head": InterpreterDevice()})
    one = npu()
    staged = StagedDevice({"prefill": InterpreterDevice(), "generate": one, "head": one})
    assert isinstance(staged.allocate(64), DeviceMemory)
