"""Pipelines of openvino_genai, or of genai_layer, whose names and parameters are the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

_FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "logit_bias": lambda biases: {int(token): bias for token, bias in biases.items()},
    "stop_token_ids": set,
}
"""Conversions of fields for which JSON has no type."""


class Pipelines:
    """Pipelines on one model; those for several requests open at their first use.

    Args:
        genai: openvino_genai or genai_layer.
        tensor: makes its tensors of arrays.
        path: a folder with a model.
        device: CPU or NPU.
        properties: properties of the pipelines.
    """

    def __init__(
        self,
        genai: ModuleType,
        tensor: Callable[[np.ndarray], Any],
        path: Path,
        device: str,
        properties: dict[str, Any],
    ) -> None:
        self._genai, self._tensor = genai, tensor
        self._place = (str(path), device, properties)
        self._pipeline = genai.LLMPipeline(str(path), device, **properties)

    def generate(self, prompt: list[int], new: int) -> tuple[float, list[int]]:
        """Generate; see ``Opened``."""
        results = self._pipeline.generate(self._inputs([prompt]), self._config(new))
        return _first_seconds(results), list(results.tokens[0])

    def first(self, prompt: list[int]) -> list[float]:
        """Return the seconds to the first token."""
        return [self.generate(prompt, 1)[0]]

    def sample(self, prompt: list[int], new: int, fields: dict[str, Any]) -> list[float]:
        """Return the seconds of a token after the first, with fields of a GenerationConfig."""
        began = time.perf_counter()
        results = self._pipeline.generate(self._inputs([prompt]), self._config(new, **fields))
        return [(time.perf_counter() - began - _first_seconds(results)) / (new - 1)]

    def chat(self, questions: list[str], new: int) -> list[float]:
        """Return the seconds to the first token of each turn."""
        config = self._config(new, apply_chat_template=True)
        self._pipeline.start_chat()
        try:
            return [_first_seconds(self._pipeline.generate([q], config)) for q in questions]
        finally:
            self._pipeline.finish_chat()

    def requests(self, prompts: list[list[int]], new: int) -> list[float]:
        """Return the seconds until all requests of a ContinuousBatchingPipeline are complete."""
        ids = [self._tensor(np.array([prompt], np.int64)) for prompt in prompts]
        configs = [self._config(new)] * len(prompts)
        return _seconds(lambda: self._batching.generate(ids, configs))

    def listed(self, prompts: list[list[int]], new: int) -> list[float]:
        """Return the seconds of a list of prompts, on an LLMPipeline with a scheduler_config."""
        return _seconds(lambda: self._scheduled.generate(self._inputs(prompts), self._config(new)))

    def sequences(self, prompt: list[int], new: int, count: int) -> list[float]:
        """Return the seconds of several sequences after one prompt, on the same pipeline."""
        config = self._config(new, do_sample=True, num_return_sequences=count)
        return _seconds(lambda: self._scheduled.generate(self._inputs([prompt]), config))

    @cached_property
    def _batching(self) -> Any:
        path, device, properties = self._place
        scheduler = self._genai.SchedulerConfig()
        return self._genai.ContinuousBatchingPipeline(path, scheduler, device, properties)

    @cached_property
    def _scheduled(self) -> Any:
        path, device, properties = self._place
        scheduler = self._genai.SchedulerConfig()
        return self._genai.LLMPipeline(path, device, scheduler_config=scheduler, **properties)

    def _config(self, new: int, **fields: Any) -> Any:
        if (given := fields.get("structured_output_config")) is not None:
            fields["structured_output_config"] = self._genai.StructuredOutputConfig(**given)
        if (name := fields.get("stop_criteria")) is not None:
            fields["stop_criteria"] = getattr(self._genai.StopCriteria, name)
        fields |= {name: read(fields[name]) for name, read in _FROM_JSON.items() if name in fields}
        fixed = {"max_new_tokens": new, "ignore_eos": True, "apply_chat_template": False}
        return self._genai.GenerationConfig(**fixed | fields)

    def _inputs(self, prompts: Sequence[list[int]]) -> Any:
        ids = np.array(prompts, np.int64)
        return self._genai.TokenizedInputs(self._tensor(ids), self._tensor(np.ones_like(ids)))


def _first_seconds(results: Any) -> float:
    return results.perf_metrics.get_ttft().mean / 1e3


def _seconds(run: Callable[[], object]) -> list[float]:
    began = time.perf_counter()
    run()
    return [time.perf_counter() - began]
