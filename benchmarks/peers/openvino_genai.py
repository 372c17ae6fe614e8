"""OpenVINO GenAI on the CPU, with its default backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openvino
import openvino_genai

from peers import Lengths
from peers.pipelines import Pipelines


def open_pipelines(path: Path, device: str, properties: dict[str, Any]) -> Pipelines:
    """Open pipelines of openvino_genai on a device."""
    return Pipelines(openvino_genai, openvino.Tensor, path, device, properties)


def open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> Pipelines:
    """Open an IR's folder on the CPU."""
    return open_pipelines(path, "CPU", {"INFERENCE_NUM_THREADS": lengths.threads, **config})


def version() -> str:
    """Return the version."""
    return openvino_genai.__version__.split("-")[0]
