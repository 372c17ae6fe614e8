"""Stack of this repository, on its simulated NPU."""

from __future__ import annotations

import os
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import numpy as np

from genai_layer import GenerationConfig, LLMPipeline
from peers import Lengths


class Ours:
    """Pipeline on device "NPU".

    Args:
        path: a folder with an IR.
        lengths: lengths that determine the static shapes.
        config: further properties, e.g. INFERENCE_PRECISION_HINT.
    """

    def __init__(self, path: Path, lengths: Lengths, config: dict[str, str]) -> None:
        properties: dict[str, Any] = {**lengths.static, **config}
        self._pipeline = LLMPipeline(path, "NPU", **properties)

    def generate(self, prompt: list[int], new: int) -> tuple[float, list[int]]:
        """Generate; see ``Opened``."""
        config = GenerationConfig(max_new_tokens=new, ignore_eos=True)
        results = self._pipeline.generate(np.array([prompt], np.int64), config)
        return results.perf_metrics.get_ttft().mean / 1e3, results.tokens[0]


def open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> Ours:
    """Open an IR's folder."""
    return Ours(path, lengths, config)


def version() -> str:
    """Return the version, and the engine if NPU_ENGINE is set."""
    engine = os.environ.get("NPU_ENGINE", "")
    return version_of("genai_layer") + (f", NPU_ENGINE={engine}" if engine else "")
