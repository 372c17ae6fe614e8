"""The real NPUW, with static models on OpenVINO's CPU plugin, as there is no NPU."""

from __future__ import annotations

from pathlib import Path

from peers import Lengths
from peers.openvino_genai import OpenVINOGenAI, version

__all__ = ["open_model", "version"]


def open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> OpenVINOGenAI:
    """Open an IR's folder on device "NPU"."""
    return OpenVINOGenAI(path, "NPU", {"NPUW_DEVICES": "CPU", **lengths.static, **config})
