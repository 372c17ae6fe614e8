"""Values of properties: OpenVINO's own objects become what OpenVINO prints.

tests/oracle/test_live_property_values.py has the real OpenVINO read these texts.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.properties as props
import openvino.properties.hint as hints
import pytest

from genai_layer import LLMPipeline
from genai_layer.properties import plain
from genai_layer.testing.toy import answering_core


class Hint(Enum):
    FAST = "FAST_COMPILE"
    BEST_PERF = 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ov.Type.f32, "f32"),
        (ov.Type.u8, "u8"),
        (ov.Type.nf4, "nf4"),
        (hints.PerformanceMode.LATENCY, "LATENCY"),
        (hints.ExecutionMode.ACCURACY, "ACCURACY"),
        (hints.Priority.DEFAULT, "MEDIUM"),
        (props.CacheMode.OPTIMIZE_SPEED, "OPTIMIZE_SPEED"),
        (props.WorkloadType.EFFICIENT, "EFFICIENT"),
        (props.log.Level.NO, "LOG_NONE"),
        (props.log.Level.ERR, "LOG_ERROR"),
        (props.log.Level.WARNING, "LOG_WARNING"),
        (ov.OVAny(ov.Type.f16), "f16"),
        (ov.OVAny("text"), "text"),
        (Hint.FAST, "FAST_COMPILE"),
        (Hint.BEST_PERF, "BEST_PERF"),
        (np.int64(256), 256),
        (np.float32(0.5), 0.5),
        (np.True_, True),
        (Path("a") / "b", "a/b"),
        ({"NPUW_DEVICES": "CPU", "X": ov.Type.f16}, {"NPUW_DEVICES": "CPU", "X": "f16"}),
    ],
)
def test_objects_become_text_and_numbers(value: Any, expected: Any) -> None:
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("value", ["YES", 3, 1.5, True, [1], print])
def test_other_values_are_unchanged(value: Any) -> None:
    assert plain(value) is value


def test_a_pipeline_passes_text_and_numbers_to_the_runtime(folder: Path) -> None:
    core = answering_core("hey")
    given = {
        hints.inference_precision: ov.Type.f32,
        "MAX_PROMPT_LEN": np.int64(64),
        "CACHE_DIR": folder / "cache",
    }
    with pytest.deprecated_call():
        LLMPipeline(folder, "NPU", given, core=core)
    assert core.config["INFERENCE_PRECISION_HINT"] == "f32"
    assert core.config["NPUW_LLM_MAX_PROMPT_LEN"] == 64
    assert core.config["CACHE_DIR"] == str(folder / "cache")
    assert {type(name) for name in core.config} == {str}
