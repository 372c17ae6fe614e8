"""Fixtures for tests of complete models on the complete stack."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.llm.request.infer_request import InferRequest

Goldens = Mapping[str, np.ndarray]
Run = Callable[..., subprocess.CompletedProcess[str]]

COMMANDS = Path(sys.executable).parent
GOLDENS = Path(__file__).resolve().parent.parent / "goldens"


class Conversation:
    """Request that keeps track of its tokens."""

    def __init__(self, request: InferRequest) -> None:
        self._request = request
        self._said = 0

    def tell(self, ids: np.ndarray) -> np.ndarray:
        """Run ids i64 [1, n]; return the last token's logits, f32 [vocabulary]."""
        count, past = ids.shape[1], self._said
        found = self._request.infer(
            {
                "input_ids": ids,
                "attention_mask": np.ones((1, past + count), np.int64),
                "position_ids": np.arange(past, past + count)[None],
            }
        )
        self._said += count
        return found["logits"][0, -1].copy()

    def restart(self) -> None:
        self._request.reset_state()
        self._said = 0


@pytest.fixture(scope="module")
def converse(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Conversation]:
    """Return a function that begins a conversation; MAX_PROMPT_LEN is the goldens', 256."""
    compiled: dict[str, Any] = {}

    def begin(path: Path, **options: Any) -> Conversation:
        config = {"NPUW_LLM_MAX_PROMPT_LEN": 256, "NPUW_LLM_MIN_RESPONSE_LEN": 64, **options}
        key = json.dumps([str(path), config])
        if key not in compiled:
            compiled[key] = Core().compile_model(path, "NPU", config)
        return Conversation(compiled[key].create_infer_request())

    return begin


@pytest.fixture
def command(tmp_path: Path) -> Run:
    """Return a function that runs one of the commands, in a separate folder."""

    def run(name: str, *argv: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(COMMANDS / name), *map(str, argv)],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            check=False,
            **options,
        )

    return run


@pytest.fixture(scope="session")
def whisper_tools(load_module: Callable[[Path], Any]) -> Any:
    """Module that writes the folder of the tiny speech recogniser, and its speech."""
    return load_module(GOLDENS / "whisper" / "folder.py")


@pytest.fixture(scope="session")
def whisper_folder(
    whisper_tools: Any,
    load_module: Callable[[Path], Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Folder of the tiny speech recogniser."""
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    parts = [
        restore(GOLDENS / "whisper", f"{part}_fp16", tmp_path_factory.mktemp(part))
        for part in ("encoder", "decoder")
    ]
    return whisper_tools.write(*parts, tmp_path_factory.mktemp("whisper"))
