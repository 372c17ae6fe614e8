"""Mapped files that are truncated during use are an error.

Reading missing pages ends the process; a check before each run prevents most such reads.
"""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from tests.npuw.conftest import ask

from npuw_layer import Core
from npuw_layer.errors import NpuwFault

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}


@pytest.mark.matrix
@pytest.mark.parametrize("begun", [True, False], ids=["between steps", "before the first"])
@pytest.mark.parametrize("mode", ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def test_a_blob_truncated_during_use_is_an_error(tiny, tmp_path, mode: str, begun: bool) -> None:
    path = tmp_path / "x.blob"
    Core().compile_model(tiny, "NPU", SMALL | {"CACHE_MODE": mode}).export_model(path)
    imported = Core().import_model(path, "NPU", {"MODEL_PTR": str(tiny)})
    request = imported.create_infer_request() if begun else None
    if request is not None:
        ask(request, np.array([[1, 2, 3]]))
    whole = path.stat().st_size
    os.truncate(path, 4096)
    with pytest.raises(NpuwFault, match=rf"x\.blob was truncated from {whole} to 4096 bytes while"):
        ask(request or imported.create_infer_request(), np.array([[4]]), 3 if begun else 0)


def test_a_model_file_truncated_during_use_is_an_error(tiny, tmp_path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "model")
    config = SMALL | {"INFERENCE_PRECISION_HINT": "f32"}  # the file's type: read in place
    request = Core().compile_model(folder, "NPU", config).create_infer_request()
    ask(request, np.array([[1, 2, 3]]))
    os.truncate(folder / "model.safetensors", 4096)
    with pytest.raises(NpuwFault, match=r"model\.safetensors was truncated from \d+ to 4096 bytes"):
        ask(request, np.array([[4]]), 3)
