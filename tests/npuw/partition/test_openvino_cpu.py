"""The real OpenVINO's CPU plugin takes parts of models as any other device does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from tests.npuw.conftest import Talk, Talks
from tests.npuw.partition import test_rules
from tests.npuw.partition.test_rules import story, write_group

from npuw_layer import Core
from npuw_layer.errors import OptionError

SMALL = test_rules.SMALL | {"NPUW_LLM_PREFILL_PYRAMID": "NO", "NPUW_LLM_SHARED_HEAD": "NO"}
ALONE, BEHIND = {"NPUW_DEVICES": "OPENVINO_CPU"}, {"NPUW_DEVICES": "NPU,OPENVINO_CPU"}
HINTS = ("NPUW_LLM_PREFILL_ATTENTION_HINT", "NPUW_LLM_GENERATE_ATTENTION_HINT")


@pytest.fixture(scope="module")
def whole(talks: Talks) -> np.ndarray:
    """What the NPU alone says, without parts."""
    return story(talks(**SMALL))


def check(compiled: Any, whole: np.ndarray) -> None:
    said = story(Talk(compiled.create_infer_request()))
    assert np.abs(said - whole).max() < 1e-5 * np.abs(whole).max()


@pytest.mark.parametrize(
    "options",
    [
        ALONE | {"NPUW_ONLINE_PIPELINE": "JUST", "NPUW_ONLINE_MIN_SIZE": 10},
        ALONE | {"NPUW_ONLINE_PIPELINE": "REP", "NPUW_ONLINE_KEEP_BLOCKS": 2},
        ALONE | {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_SPATIAL_NWAY": 48},
        ALONE | {"NPUW_ONLINE_ISOLATE": "ATTN,P:RoPE/rope"},
        ALONE | dict.fromkeys(HINTS, "HFA"),
        {"NPUW_DEVICES": "OPENVINO_CPU,CPU"} | dict.fromkeys(HINTS, "DYNAMIC"),
        {"NPUW_DEVICES": "OPENVINO_CPU,NPU", "NPUW_ONLINE_AVOID": "Op:Swish/OPENVINO_CPU"},
        BEHIND | {"NPUW_ONLINE_AVOID": "P:SDPA/NPU,Op:Swish/NPU"},
        BEHIND | {"NPUW_ONLINE_ISOLATE": "ATTN", "NPUW_SUBMODEL_DEVICE": "generate:OPENVINO_CPU"},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_of_parts_it_says_what_the_npu_says_of_the_whole(
    tiny: Path, whole: np.ndarray, options: Mapping[str, Any]
) -> None:
    check(Core().compile_model(tiny, "NPU", SMALL | options), whole)


def test_it_takes_the_groups_of_a_plan(tiny: Path, whole: np.ndarray, tmp_path: Path) -> None:
    asked = write_group(tmp_path / "plan.xml", "model.norm")
    check(Core().compile_model(tiny, "NPU", SMALL | ALONE | asked), whole)


def test_its_submodels_are_written_down(tiny: Path, tmp_path: Path) -> None:
    dump = {"NPUW_DUMP_SUBS": "0,last", "NPUW_DUMP_SUBS_DIR": str(tmp_path)}
    Core().compile_model(tiny, "NPU", SMALL | ALONE | dump | {"NPUW_ONLINE_ISOLATE": "ATTN"})
    written = sorted(path.stem for path in tmp_path.glob("generate_192*.xml"))
    assert written == ["generate_192_0", "generate_192_4"]
    assert openvino.Core().read_model(tmp_path / "generate_192_4.xml").outputs


@pytest.mark.parametrize("weightless", ["YES", "NO"])
@pytest.mark.parametrize("cut", [{}, {"NPUW_ONLINE_ISOLATE": "ATTN"}], ids=["whole", "in parts"])
def test_what_it_runs_is_exported_and_imported(
    tiny: Path, whole: np.ndarray, tmp_path: Path, cut: Mapping[str, Any], weightless: str
) -> None:
    target = tmp_path / "model.blob"
    options = SMALL | ALONE | cut | {"ENABLE_WEIGHTLESS": weightless}
    Core().compile_model(tiny, "NPU", options).export_model(target)
    check(Core().import_model(target, "NPU", {"WEIGHTS_PATH": str(tiny)}), whole)


def test_what_names_files_of_this_machine_is_not_exported(tiny: Path, tmp_path: Path) -> None:
    """So that another device can take it over, the NPU's programs come with their graph."""
    target = {"EXPORT_BLOB": "YES", "BLOB_PATH": tmp_path / "model.blob"}
    avoid = {"NPUW_ONLINE_AVOID": "P:SDPA/NPU"}
    with pytest.raises(OptionError, match="its programs name files of this machine"):
        Core().compile_model(tiny, "NPU", SMALL | BEHIND | avoid | target)
