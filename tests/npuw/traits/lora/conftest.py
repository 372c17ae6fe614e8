"""Conversations with adapters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS


def wear(talk: Any, adapter: Mapping[str, np.ndarray]) -> Any:
    """Set an adapter for the following inferences of a conversation."""
    states = {state.name: state for state in talk.request.query_state()}
    for name, values in adapter.items():
        states[name].state = values
    return talk


def greedy(talk: Any, prompt: list[int], count: int) -> list[int]:
    """Return the tokens that a conversation generates greedily."""
    found = [int(talk.tell(prompt).argmax())]
    while len(found) < count:
        found.append(int(talk.tell(found[-1:]).argmax()))
    return found


@pytest.fixture(scope="session")
def llama(adapt) -> Any:
    """Return a model of two layers, all of whose projections are adapted."""
    return adapt("llama_fp16")


@pytest.fixture(scope="session")
def said_by_genai() -> Mapping[str, Any]:
    """Return the real openvino_genai's tokens; see tools/make_adapter_goldens.py."""
    return json.loads((GOLDENS / "adapters.json").read_text())
