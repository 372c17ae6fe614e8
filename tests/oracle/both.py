"""One model compiled by this stack and by the real NPUW, run on the same inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from tests.oracle.real_npuw import EXACTLY, ON_CPU

from npuw_layer import Core

LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
CHUNKED = LENGTHS | {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}


class Chat:
    """Conversation with a model compiled by either implementation."""

    def __init__(self, compiled: Any) -> None:
        self.request = compiled.create_infer_request()
        self.said = 0
        self._known: set[str] | None = None
        if isinstance(compiled, ov.CompiledModel):
            self._known = {name for port in compiled.inputs for name in port.names}

    def tell(self, ids: np.ndarray, back: int = 0) -> np.ndarray:
        """Run tokens i64 [n] after rewinding by ``back``; return the last token's logits."""
        self.said -= back
        total = self.said + len(ids)
        inputs = {
            "input_ids": ids[None],
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": np.arange(self.said, total)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        if self._known is not None:
            inputs = {name: value for name, value in inputs.items() if name in self._known}
        self.request.infer(inputs)
        self.said = total
        return np.array(self.request.get_tensor("logits").data[0, -1])

    def reset(self) -> None:
        self.request.reset_state()
        self.said = 0

    def greedy(self, ids: np.ndarray, most: int) -> Iterator[int]:
        """Generate at most ``most`` greedy tokens after a prompt."""
        for _ in range(most):
            token = int(self.tell(ids).argmax())
            yield token
            ids = np.array([token])


class Both:
    """One IR compiled by both implementations, with the same lengths."""

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        real = ov.Core()
        # NPUW counts tokens of all requests of a compiled model together, so each model has one.
        config = ON_CPU | EXACTLY | options
        self.real = real.compile_model(real.read_model(path), "NPU", config)
        self.theirs = Chat(self.real)
        self.ours = Chat(ours(path, options))
        self.vocabulary = self.real.output("logits").partial_shape[2].get_length()

    def draw(self, seed: int, count: int) -> np.ndarray:
        return np.random.default_rng(seed).integers(0, self.vocabulary, count)

    def reset(self) -> None:
        self.theirs.reset()
        self.ours.reset()

    def check(self, ids: np.ndarray, back: int = 0) -> int:
        """Run tokens in both; check that logits agree, and return the greedy token."""
        expected, found = self.theirs.tell(ids, back), self.ours.tell(ids, back)
        error = distance(found, expected)
        assert error <= 1e-4, f"{len(ids)} tokens at {self.ours.said}: {error:.1e}"
        assert found.argmax() == expected.argmax(), f"at {self.ours.said}"
        return int(found.argmax())

    def check_answer(self, ids: np.ndarray, tokens: int) -> None:
        for _ in range(tokens):
            ids = np.array([self.check(ids)])


def ours(path: Path, options: dict[str, Any], device: str = "NPU") -> Any:
    """Compile a model with NPUW's lengths of prefill models; it has no pyramid of them."""
    own = {"INFERENCE_PRECISION_HINT": "f32", "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    return Core().compile_model(path, "NPU", own | options | {"NPUW_DEVICES": device})


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())
