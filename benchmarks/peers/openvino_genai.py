"""OpenVINO GenAI on the CPU, with its default backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino
import openvino_genai

from peers import Lengths


class OpenVINOGenAI:
    """Pipeline of openvino_genai.

    Args:
        path: a folder with an IR.
        device: CPU or NPU.
        properties: properties of the pipeline.
    """

    def __init__(self, path: Path, device: str, properties: dict[str, Any]) -> None:
        self._pipeline = openvino_genai.LLMPipeline(str(path), device, **properties)

    def generate(self, prompt: list[int], new: int) -> tuple[float, list[int]]:
        """Generate; see ``Opened``."""
        ids = np.array([prompt], np.int64)
        inputs = openvino_genai.TokenizedInputs(
            openvino.Tensor(ids), openvino.Tensor(np.ones_like(ids))
        )
        config = openvino_genai.GenerationConfig(
            max_new_tokens=new, ignore_eos=True, do_sample=False, apply_chat_template=False
        )
        results = self._pipeline.generate(inputs, config)
        return results.perf_metrics.get_ttft().mean / 1e3, list(results.tokens[0])


def open_model(path: Path, lengths: Lengths, config: dict[str, str]) -> OpenVINOGenAI:
    """Open an IR's folder on the CPU."""
    return OpenVINOGenAI(path, "CPU", {"INFERENCE_NUM_THREADS": lengths.threads, **config})


def version() -> str:
    """Return the version."""
    return openvino_genai.__version__.split("-")[0]
