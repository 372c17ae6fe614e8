"""The real NPUW, with static models on OpenVINO's CPU plugin, as there is no NPU."""

from __future__ import annotations

from pathlib import Path

from peers import Lengths
from peers.openvino_genai import open_pipelines, version
from peers.pipelines import Pipelines

__all__ = ["open_model", "version"]


def open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> Pipelines:
    """Open an IR's folder on device "NPU"."""
    return open_pipelines(path, "NPU", {"NPUW_DEVICES": "CPU", **lengths.static, **config})
