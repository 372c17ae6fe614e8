"""The real OpenVINO's CPU plugin as a device for parts of models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from tests.npuw import conftest
from tests.npuw.conftest import Talk, Talks
from tests.npuw.execution.partition import test_rules
from tests.npuw.execution.partition.test_rules import story, write_group
from tests.npuw.faulty_device import FaultyDevice

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.openvino import OpenVINODevice
from npuw_layer.errors import OptionError
from npuw_layer.execution.devices.several import SeveralDevices

SMALL = conftest.SMALL | test_rules.SMALL
ALONE, BEHIND = {"NPUW_DEVICES": "OPENVINO_CPU"}, {"NPUW_DEVICES": "NPU,OPENVINO_CPU"}
HINTS = ("NPUW_LLM_PREFILL_ATTENTION_HINT", "NPUW_LLM_GENERATE_ATTENTION_HINT")


@pytest.fixture(scope="module")
def whole(talks: Talks) -> np.ndarray:
    """Return the logits of the NPU alone, without parts."""
    return story(talks(**SMALL))


def check(compiled: Any, whole: np.ndarray) -> None:
    said = story(Talk(compiled.create_infer_request()))
    assert np.abs(said - whole).max() < 1e-5 * np.abs(whole).max()


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        ALONE | {"NPUW_ONLINE_PIPELINE": "REP", "NPUW_ONLINE_KEEP_BLOCKS": 2},
        ALONE | {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_SPATIAL_NWAY": 48},
        ALONE | {"NPUW_ONLINE_ISOLATE": "ATTN,P:RoPE/rope"},
        ALONE | dict.fromkeys(HINTS, "HFA"),
        {"NPUW_DEVICES": "OPENVINO_CPU,CPU"} | dict.fromkeys(HINTS, "DYNAMIC"),
        BEHIND | {"NPUW_ONLINE_AVOID": "P:SDPA/NPU,Op:Swish/NPU"},
        BEHIND | {"NPUW_ONLINE_ISOLATE": "ATTN", "NPUW_SUBMODEL_DEVICE": "generate:OPENVINO_CPU"},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_parts_on_openvino_return_the_results_of_the_uncut_model_on_the_npu(
    tiny: Path, whole: np.ndarray, options: Mapping[str, Any]
) -> None:
    check(Core().compile_model(tiny, "NPU", SMALL | options), whole)


@pytest.mark.long
def test_openvino_takes_over_parts_that_the_npu_rejects(tiny: Path, whole: np.ndarray) -> None:
    refusing = FaultyDevice(LevelZeroDevice(StaticCompiler(), "4000"), refuses="out of paper")
    devices = SeveralDevices({"NPU": lambda: refusing, "OPENVINO_CPU": OpenVINODevice})
    cut = SMALL | {"NPUW_ONLINE_ISOLATE": "ATTN"}
    compiled = Core(device=devices).compile_model(tiny, "NPU", cut)
    check(compiled, whole)
    assert compiled.get_property("EXECUTION_DEVICES") == ["OPENVINO_CPU"]


@pytest.mark.long
def test_openvino_takes_over_parts_of_a_lost_npu(tiny: Path, whole: np.ndarray) -> None:
    """The NPU is lost in the middle of a layer."""
    lost = FaultyDevice(LevelZeroDevice(StaticCompiler(), "4000"), good_runs=25)
    devices = SeveralDevices({"NPU": lambda: lost, "OPENVINO_CPU": OpenVINODevice})
    cut = SMALL | {"NPUW_ONLINE_ISOLATE": "ATTN"}
    compiled = Core(device=devices).compile_model(tiny, "NPU", cut)
    check(compiled, whole)
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"NPU", "OPENVINO_CPU"}


@pytest.mark.long
def test_openvino_runs_the_groups_of_a_plan(tiny: Path, whole: np.ndarray, tmp_path: Path) -> None:
    asked = write_group(tmp_path / "plan.xml", "model.norm")
    check(Core().compile_model(tiny, "NPU", SMALL | ALONE | asked), whole)


@pytest.mark.long
def test_submodels_of_openvino_are_dumped(tiny: Path, tmp_path: Path) -> None:
    dump = {"NPUW_DUMP_SUBS": "0,last", "NPUW_DUMP_SUBS_DIR": str(tmp_path)}
    Core().compile_model(tiny, "NPU", SMALL | ALONE | dump | {"NPUW_ONLINE_ISOLATE": "ATTN"})
    written = sorted(path.stem for path in tmp_path.glob("generate_192*.xml"))
    assert written == ["generate_192_0", "generate_192_4"]
    assert openvino.Core().read_model(tmp_path / "generate_192_4.xml").outputs


@pytest.mark.long
@pytest.mark.parametrize(
    ("cut", "weightless"), [({}, "NO"), ({"NPUW_ONLINE_ISOLATE": "ATTN"}, "YES")], ids=str
)
def test_submodels_of_openvino_are_exported_and_imported(
    tiny: Path, whole: np.ndarray, tmp_path: Path, cut: Mapping[str, Any], weightless: str
) -> None:
    target = tmp_path / "model.blob"
    options = SMALL | ALONE | cut | {"ENABLE_WEIGHTLESS": weightless}
    Core().compile_model(tiny, "NPU", options).export_model(target)
    check(Core().import_model(target, "NPU", {"WEIGHTS_PATH": str(tiny)}), whole)


def test_programs_that_name_local_files_are_not_exported(tiny: Path, tmp_path: Path) -> None:
    """The NPU's programs contain their graphs, so that another device can take over."""
    target = {"EXPORT_BLOB": "YES", "BLOB_PATH": tmp_path / "model.blob"}
    avoid = {"NPUW_ONLINE_AVOID": "P:SDPA/NPU"}
    with pytest.raises(OptionError, match="its programs name files of this machine"):
        Core().compile_model(tiny, "NPU", SMALL | BEHIND | avoid | target)
