"""Texts of property values, read by the real OpenVINO, live."""

from __future__ import annotations

from typing import Any

import openvino as ov
import openvino.properties as props
import openvino.properties.hint as hints
import pytest

from genai_layer.properties import plain

pytestmark = pytest.mark.oracle


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
