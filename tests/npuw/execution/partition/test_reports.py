"""Reports of a partitioned model: devices of its parts, reasons, and accuracy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw import conftest
from tests.npuw.conftest import Talk, ask
from tests.npuw.execution.partition.test_rules import SMALL as LENGTHS
from tests.npuw.faulty_device import FaultyDevice

from compiler_layer.model import Model
from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import SUBMODEL, Array, Device
from npuw_layer.errors import DeviceError
from npuw_layer.execution.devices.placed import Policy
from npuw_layer.execution.devices.several import SeveralDevices

SMALL = conftest.SMALL | LENGTHS | {"NPUW_LLM_GENERATE_PYRAMID": "NO"}
ATTENTION = {"NPUW_ONLINE_ISOLATE": "ATTN"}
HINTS = ("NPUW_LLM_PREFILL_ATTENTION_HINT", "NPUW_LLM_GENERATE_ATTENTION_HINT")


def told(model: Path, options: Mapping[str, Any], core: Core | None = None) -> Mapping[str, str]:
    """Return the report after a prompt of 40 tokens and four more."""
    compiled = (core or Core()).compile_model(model, "NPU", SMALL | options)
    talk = Talk(compiled.create_infer_request())
    talk.tell(np.arange(1, 41))
    for token in (3, 1, 4, 1):
        talk.tell([token])
    report = talk.request.execution_report()
    where = ", ".join(compiled.get_property("EXECUTION_DEVICES"))
    return {name.removeprefix("device of "): text for name, text in report.items()} | {"": where}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "generate"),
    [
        ({"NPUW_ONLINE_AVOID": "P:SDPA/NPU"}, "part ×3: NPU | not NPU ×2: CPU"),
        (ATTENTION, "part ×3: NPU | attn ×2: NPU"),
        (ATTENTION | {"NPUW_SUBMODEL_DEVICE": "generate:CPU"}, "part ×3: CPU | attn ×2: CPU"),
        (dict.fromkeys(HINTS, "HFA"), "part ×3: NPU | HFA ×2: NPU"),
        (dict.fromkeys(HINTS, "DYNAMIC"), "part ×3: NPU | DYNAMIC ×2: CPU"),
    ],
    ids=str,
)
def test_the_report_has_the_device_of_each_kind_of_part(
    tiny: Path, options: Mapping[str, Any], generate: str
) -> None:
    report = told(tiny, {"NPUW_DEVICES": "NPU,CPU"} | options)
    assert report["generate_192"] == generate
    assert report[""] == ("NPU, CPU" if "CPU" in generate else "NPU")


@pytest.mark.long
def test_the_report_has_the_device_of_tiled_blocks(tiny: Path) -> None:
    tiles = {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_SPATIAL_NWAY": 16}
    report = told(tiny, {"NPUW_DEVICES": "CPU,NPU"} | tiles)
    assert report["prefill_64"] == "part ×3: CPU | compute ×3: CPU"


@pytest.mark.long
def test_with_a_single_device_the_report_has_no_placements(tiny: Path) -> None:
    for options in (ATTENTION, dict.fromkeys(HINTS, "DYNAMIC") | {"NPUW_DEVICES": "CPU"}):
        assert "generate_192" not in told(tiny, options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "reference"),
    [(ATTENTION, "CPU"), (dict.fromkeys(HINTS, "HFA"), "OPENVINO_CPU")],
    ids=str,
)
def test_the_report_has_the_accuracy_of_checked_parts(
    tiny: Path, options: Mapping[str, Any], reference: str
) -> None:
    """Four tokens run through two attentions and three other parts; each has its worst output."""
    checks = {"NPUW_ACC_CHECK": "YES", "NPUW_ACC_DEVICE": reference}
    found = told(tiny, options | checks)["generate_192"].split(" | ")
    assert [re.match(r"\w+ ×\d: NPU; \d+ runs checked", part) is not None for part in found]
    assert found[0].startswith("part ×3: NPU; 12 runs checked, largest NRMSE ")
    for part in found:
        error = float(part.split("largest NRMSE ")[1].split()[0])
        assert 0 < error < 1e-6
        assert re.search(r"\(\S+ of generate_192/\w+\d\)$", part)


class Picky(FaultyDevice):
    """The NPU, except that it rejects some submodels."""

    def __init__(self, refused: str) -> None:
        super().__init__(npu())
        self._refused = refused

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        if re.search(self._refused, config[SUBMODEL]):
            raise DeviceError(f"{config[SUBMODEL]} is too much")
        return super().compile(model, config)


def npu() -> Device:
    return LevelZeroDevice(StaticCompiler(), "4000")


def several(first: Device, policy: Policy | None = None) -> Core:
    makers: dict[str, Callable[[], Device]] = {"NPU": lambda: first, "CPU": InterpreterDevice}
    return Core(device=SeveralDevices(makers, policy))


@pytest.mark.long
def test_the_report_has_the_reason_for_parts_that_the_npu_rejects(tiny: Path) -> None:
    report = told(tiny, ATTENTION, several(Picky("generate_192/attn")))
    assert report["generate_192"] == (
        "part ×3: NPU | attn ×2: CPU; NPU cannot compile it: generate_192/attn1 is too much"
    )
    assert report[""] == "NPU, CPU"


@pytest.mark.long
def test_parts_of_a_kind_may_be_on_several_devices(tiny: Path) -> None:
    """Two attentions are one program, unless they are compiled separately."""
    alone = ATTENTION | {"NPUW_FOLD": "NO"}
    report = told(tiny, alone, several(Picky(r"generate_192/(attn3|part)")))
    assert report["generate_192"] == (
        "part ×3: CPU; NPU cannot compile it: generate_192/part0 is too much (and 2 more notes) "
        "| attn ×2: NPU ×1, CPU ×1; NPU cannot compile it: generate_192/attn3 is too much"
    )


@pytest.mark.long
def test_the_report_has_the_error_of_inaccurate_parts(tiny: Path) -> None:
    def spoil(name: str, values: Array) -> None:
        if name == "logits":
            values *= 1.5

    policy = Policy(reference="CPU")
    options = ATTENTION | {"NPUW_LLM_SHARED_HEAD": "NO"}
    report = told(tiny, options, several(FaultyDevice(npu(), spoil), policy))
    wrong, attention = report["generate_192"].split(" | ")
    assert wrong.startswith("part ×3: NPU ×2, CPU ×1; NPU is inaccurate: NRMSE of logits is ")
    assert re.search(r"9 runs checked, largest NRMSE \S+e-0[12] \(logits of gen", wrong)
    assert attention.startswith("attn ×2: NPU; 8 runs checked, largest NRMSE ")


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [{"NPUW_ONLINE_PIPELINE": "JUST"}, dict.fromkeys(HINTS, "HFA")], ids=str
)
def test_new_requests_use_parts_on_the_device_that_they_moved_to(tiny: Path, options) -> None:
    """New requests once read the weights in the NPU's form, and the CPU has others."""
    checked = {"NPUW_ACC_CHECK": "YES", "NPUW_ACC_THRESH": 0}
    models = [
        Core().compile_model(tiny, "NPU", SMALL | more) for more in (options, options | checked)
    ]
    for _ in range(2):
        expected, found = (
            ask(model.create_infer_request(), np.arange(1, 91)[None]) for model in models
        )
        assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
