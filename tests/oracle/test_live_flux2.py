"""FLUX.2's models compared to the real NPUW, live: with the same options, outputs are equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from tests.conftest import GOLDENS
from tests.oracle.real_npuw import EXACT

from npuw_layer import Core

pytestmark = pytest.mark.oracle

FLUX2 = GOLDENS / "flux2"
THROUGH_NPUW = {"NPU_USE_NPUW": "YES", "NPUW_FLUX2": "YES"}


@pytest.mark.parametrize("name", ["transformer", "vae_decoder", "vae_encoder"])
def test_outputs_equal_npuws(restored: Callable[[Path, str], Path], name: str) -> None:
    """Inputs are random, not those of the golden files."""
    path = restored(FLUX2, name)
    draw = np.random.default_rng()
    given = {
        port: draw.standard_normal(values.shape).astype(values.dtype)
        for port, values in np.load(FLUX2 / f"{name}.npz").items()
        if port != "output"
    }
    real = THROUGH_NPUW | EXACT | {"NPUW_DEVICES": "CPU", "NPUW_F16IC": "NO"}
    (expected,) = ov.Core().compile_model(path, "NPU", real)(given).values()
    ours = THROUGH_NPUW | {"INFERENCE_PRECISION_HINT": "f32"}
    request = Core().compile_model(path, "NPU", ours).create_infer_request()
    (found,) = request.infer(given).values()
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
