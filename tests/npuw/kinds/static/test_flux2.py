"""The models of FLUX.2 through NPUW (NPUW_FLUX2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS

from npuw_layer import Core
from npuw_layer.errors import OptionError
from npuw_layer.kinds.flux2.kind import role_of
from npuw_layer.kinds.static.compiled_model import StaticCompiledModel

FLUX2 = GOLDENS / "flux2"
MODELS = ("transformer", "vae_decoder", "vae_encoder")
EXACT = {"NPUW_FLUX2": "YES", "INFERENCE_PRECISION_HINT": "f32"}


@pytest.fixture
def model(restored: Callable[[Path, str], Path]) -> Callable[[str], Path]:
    """Return a function that finds the IR of one of the models."""
    return lambda name: restored(FLUX2, name)


@pytest.mark.matrix
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "options",
    [{}, {"NPUW_DEVICES": "CPU"}, {"NPUW_DEVICES": "OPENVINO_CPU", "NPUW_ONLINE_PIPELINE": "NONE"}],
    ids=["NPU", "interpreter", "OpenVINO"],
)
def test_each_model_equals_openvino(model, name: str, options: dict[str, Any]) -> None:
    given = dict(np.load(FLUX2 / f"{name}.npz"))
    expected = given.pop("output")
    compiled = Core().compile_model(model(name), "NPU", EXACT | options)
    (found,) = compiled.create_infer_request().infer(given).values()
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_the_inputs_identify_the_role(model, demo_ir: Path, tmp_path: Path) -> None:
    assert [role_of(model(name)) for name in MODELS] == list(MODELS)
    assert role_of(demo_ir) == "text_encoder"
    (tmp_path / "broken.xml").write_text("<net><layer type='Parameter' name='x'")
    assert role_of(tmp_path / "broken.xml") == "unknown"


@pytest.mark.matrix
@pytest.mark.parametrize("name", MODELS)
def test_each_model_is_static_and_runs_through_npuw(model, name: str) -> None:
    compiled = Core().compile_model(model(name), "NPU", EXACT)
    assert isinstance(compiled, StaticCompiledModel)
    pipeline = "REG" if name == "transformer" else "NONE"
    assert compiled.get_property("NPUW_ONLINE_PIPELINE") == pipeline
    assert compiled.get_property("NPU_USE_NPUW")


def test_other_paths_are_rejected(model) -> None:
    for other in ({"NPU_USE_NPUW": "NO"}, {"NPUW_LLM": "YES"}):
        with pytest.raises(OptionError, match="NPUW_FLUX2 = YES needs NPU_USE_NPUW = YES"):
            Core().compile_model(model("vae_decoder"), "NPU", EXACT | other)
