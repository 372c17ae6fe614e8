"""Property values, read by the real OpenVINO, live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.properties as props
import openvino.properties.hint as hints
import pytest

from genai_layer import ArgumentError
from genai_layer.properties import for_device, plain
from npuw_layer.options import parse_options

pytestmark = pytest.mark.oracle

EXPORTED = Path(__file__).resolve().parent.parent / "goldens" / "exported"
GROUP_SIZE = "DYNAMIC_QUANTIZATION_GROUP_SIZE"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PERFORMANCE_HINT", hints.PerformanceMode.LATENCY),
        ("EXECUTION_MODE_HINT", hints.ExecutionMode.ACCURACY),
        ("SCHEDULING_CORE_TYPE", hints.SchedulingCoreType.PCORE_ONLY),
        ("INFERENCE_PRECISION_HINT", ov.Type.f32),
        ("LOG_LEVEL", props.log.Level.ERR),
        ("LOG_LEVEL", props.log.Level.NO),
    ],
)
def test_openvino_reads_the_text_of_a_value_as_its_object(name: str, value: Any) -> None:
    core = ov.Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin, which checks values
    core.set_property("CPU", {name: plain(value)})
    assert core.get_property("CPU", name) == value
    with pytest.raises(RuntimeError):
        core.set_property("CPU", {name: "wrong"})


@pytest.mark.parametrize("value", [0, "0", -1, "-1", str((1 << 64) - 1)])
def test_openvino_reads_the_same_group_size(value: object) -> None:
    core = ov.Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")
    core.set_property("CPU", {GROUP_SIZE: value})
    ours = parse_options({GROUP_SIZE: value}).dynamic_quantization_group_size
    assert core.get_property("CPU", GROUP_SIZE) == ours


def test_openvino_cuts_tokens_into_groups_of_32_and_stays_exact_without_groups(
    restored: Callable[[Path, str], Path],
) -> None:
    """On x86; on Arm, OpenVINO's CPU plugin computes one group per token."""
    model = ov.Core().read_model(restored(EXPORTED, "llama_int8"))
    prompt = np.load(EXPORTED / "llama_int8.npz")["prompt_100"]
    ports = {
        "input_ids": prompt,
        "attention_mask": np.ones_like(prompt),
        "position_ids": np.arange(prompt.shape[1])[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    exact, grouped, whole = (
        ov.Core().compile_model(model, "CPU", {GROUP_SIZE: size})(ports)["logits"]
        for size in ("0", "32", "-1")
    )
    np.testing.assert_array_equal(whole, exact)
    assert np.abs(grouped - exact).max() > 1e-4 * np.abs(exact).max()


@pytest.mark.parametrize(
    "by_device",
    [
        {"CPU": {"INFERENCE_PRECISION_HINT": "f32"}},
        {"CPU": {"INFERENCE_PRECISION_HINT": "f32"}, "NPU": {"NO_SUCH": 1}},
        {"NPU": {"NO_SUCH": 1}},
        {},
    ],
    ids=str,
)
def test_properties_by_device_are_openvinos(by_device: Any, demo_ir: Path) -> None:
    given = {"INFERENCE_PRECISION_HINT": "bf16", "DEVICE_PROPERTIES": by_device}
    core = ov.Core()
    model = core.read_model(demo_ir)
    theirs = core.compile_model(model, "CPU", given)
    ours = core.compile_model(model, "CPU", for_device(given, "CPU"))
    name = "INFERENCE_PRECISION_HINT"
    assert ours.get_property(name) == theirs.get_property(name)


@pytest.mark.parametrize("wrong", ["x", 3, None, [1], {"CPU": "x"}, {"CPU": None}], ids=str)
def test_other_containers_are_errors_of_both(wrong: Any, demo_ir: Path) -> None:
    given = {"DEVICE_PROPERTIES": wrong}
    with pytest.raises(RuntimeError):
        ov.Core().compile_model(demo_ir, "CPU", given)
    with pytest.raises(ArgumentError):
        for_device(given, "CPU")
