"""Stack of this repository, on its simulated NPU."""

from __future__ import annotations

import os
from importlib.metadata import version as version_of
from pathlib import Path

import genai_layer
from peers import Lengths
from peers.pipelines import Pipelines


def open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> Pipelines:
    """Open a folder on device "NPU", with the lengths as static shapes."""
    return Pipelines(genai_layer, lambda array: array, path, "NPU", {**lengths.static, **config})


def version() -> str:
    """Return the version, and the engine if NPU_ENGINE is set."""
    engine = os.environ.get("NPU_ENGINE", "")
    return version_of("genai_layer") + (f", NPU_ENGINE={engine}" if engine else "")
