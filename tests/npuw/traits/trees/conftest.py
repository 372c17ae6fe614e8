"""A target and a draft that take trees of candidates, and requests that read such trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS
from tests.npuw.conftest import caches_of

from npuw_layer import Core
from npuw_layer.llm.request.infer_request import InferRequest

EAGLE = GOLDENS / "exported" / "eagle"
STATES = "last_hidden_state"
SAMPLING = "npuw_eagle3_sampling_result"
OPTIONS = {
    "NPUW_EAGLE": "YES",
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 16,
    "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 10,
    "INFERENCE_PRECISION_HINT": "f32",
}
"""Options for steps of 10 tokens, which are rounded up to 16."""

NOTHING = np.zeros((1, 1, 1, 1), np.float32)
"""Mask without a tree."""

BLOCKED = -np.inf


class Tree:
    """Candidates, each after its parent; the first one is the root."""

    def __init__(self, parents: Sequence[int]) -> None:
        count = len(parents)
        self.parents = parents
        self.sees = np.eye(count, dtype=bool)
        for node, parent in enumerate(parents[1:], 1):
            self.sees[node] |= self.sees[parent]
        self.depths = self.sees.sum(1) - 1

    def mask(self, stored: int = 0) -> np.ndarray:
        """Return the mask to add to scores, [1, 1, n, stored + n]."""
        square = np.where(self.sees, np.float32(0), np.float32(BLOCKED))
        return np.pad(square, ((0, 0), (stored, 0)))[None, None]

    def path(self, node: int) -> np.ndarray:
        """Return the path from the root to a candidate."""
        return np.flatnonzero(self.sees[node])


class Talk:
    """A request, and the number of its valid tokens."""

    def __init__(self, request: InferRequest) -> None:
        self.request = request
        self.said = 0

    def tell(
        self,
        ids: Iterable[int],
        hidden: np.ndarray | None = None,
        tree: Tree | None = None,
        mask: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """Read tokens after the valid ones: a sequence, or the candidates of a tree."""
        new = np.array([*ids], np.int64)
        depths = np.arange(len(new)) if tree is None else tree.depths
        if mask is None:
            mask = NOTHING if tree is None else tree.mask(self.said)
        given = {
            "input_ids": new[None],
            "attention_mask": np.ones((1, self.said + len(new)), np.int64),
            "position_ids": (self.said + depths)[None],
            "eagle_tree_mask": mask,
        }
        if hidden is not None:
            given["hidden_states"] = hidden[None]
        found = {name: values.copy() for name, values in self.request.infer(given).items()}
        self.said += len(new)
        return found

    @property
    def sampling(self) -> Any:
        return next(state for state in self.request.query_state() if state.name == SAMPLING)

    def accept(self, path: Sequence[int] | np.ndarray, of: int) -> None:
        """Accept candidates of the last inference."""
        self.sampling.state = result(path, of)
        self.said -= of - len(path)

    @property
    def rows(self) -> list[np.ndarray]:
        """Return K and V of all layers."""
        values = caches_of(self.request)
        return [values[name] for name in values if name != SAMPLING]


def result(path: Sequence[int] | np.ndarray, of: int) -> np.ndarray:
    """Return the variable's value that accepts a path."""
    marks = np.zeros(of, np.int64)
    marks[np.asarray(path, np.int64)] = 1
    return np.array([of, len(path), *marks])


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest expected value."""
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.fixture(scope="session")
def compiled(restored: Callable[[Path, str], Path]) -> Callable[..., Any]:
    """Return a function that compiles one of the models, once for equal options."""
    known: dict[str, Any] = {}

    def make(name: str = "target", **options: Any) -> Any:
        key = repr((name, sorted(options.items())))
        if key not in known:
            path = restored(EAGLE, f"tree_{name}")
            known[key] = Core().compile_model(path, "NPU", OPTIONS | options)
        return known[key]

    return make


@pytest.fixture(scope="session")
def begin(compiled: Callable[..., Any]) -> Callable[..., Talk]:
    """Return a function that starts a conversation with one of the models."""
    return lambda *name, **options: Talk(compiled(*name, **options).create_infer_request())
