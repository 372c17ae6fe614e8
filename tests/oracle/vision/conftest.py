"""The tiny Qwen2-VL of tests/goldens, and both packages' pipelines for it.

The real pipeline runs on device NPU without an NPU; this one on the simulated NPU.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.golden_tokenizers import read_golden
from tests.oracle.real_npuw import EXACT, ON_CPU

import genai_layer as ours

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"


@pytest.fixture(scope="session")
def tools(load_module: Callable[[Path], Any]) -> Any:
    return load_module(GOLDENS / "vision" / "folder.py")


@pytest.fixture(scope="session")
def folder(
    tools: Any, load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Folder that both packages read."""
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    found = tools.write(restore, tmp_path_factory.mktemp("vision"))
    read_golden(GOLDENS / "vision" / "tokenizer.json.xz").write(found)
    return found


@pytest.fixture(scope="session", params=["CPU", "NPU"])
def pipes(folder: Path, cpu: tuple[Any, Any], request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """Both pipelines on a device, in f32."""
    if request.param == "CPU":
        return cpu
    theirs, exact = pytest.importorskip("openvino_genai"), {"INFERENCE_PRECISION_HINT": "f32"}
    real = theirs.VLMPipeline(folder, "NPU", **exact, **ON_CPU)
    return ours.VLMPipeline(folder, "NPU", **exact), real


@pytest.fixture(scope="session")
def cpu(folder: Path) -> tuple[Any, Any]:
    theirs = pytest.importorskip("openvino_genai")
    return ours.VLMPipeline(folder, "CPU", **EXACT), theirs.VLMPipeline(folder, "CPU", **EXACT)
