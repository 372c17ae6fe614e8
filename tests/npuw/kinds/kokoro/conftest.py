"""A tiny Kokoro, as OpenVINO converts it, and the real OpenVINO's outputs for texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core

GOLDENS = Path(__file__).resolve().parents[3] / "goldens"


@dataclass(frozen=True)
class Kokoro:
    """IR of the model and OpenVINO's outputs; see tools/make_kokoro_goldens.py."""

    path: Path
    said: Mapping[str, np.ndarray]
    text: Callable[..., dict[str, np.ndarray]]
    """Inputs: ``text(length, tokens)``."""

    def audio(self, length: int) -> np.ndarray:
        """Return the audio of the text of a length, read whole."""
        return self.said[f"audio_{length}"]

    def durations(self, length: int) -> np.ndarray:
        """Return the durations of the tokens of a text."""
        return self.said[f"durations_{length}"]

    def compile(self, core: Core | None = None, **config: object) -> Any:
        """Compile the model, by default for numpy."""
        every = {"NPUW_KOKORO": "YES", "NPUW_DEVICES": "CPU"} | config
        return (core or Core()).compile_model(self.path, "NPU", every)


@pytest.fixture(scope="session")
def kokoro(load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Kokoro:
    """Restore the model."""
    folder = GOLDENS / "kokoro"
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    path = restore(folder, "kokoro", tmp_path_factory.mktemp("kokoro"))
    return Kokoro(path, dict(np.load(folder / "kokoro.npz")), load_module(folder / "texts.py").text)


@pytest.fixture(scope="session")
def compiled(kokoro: Kokoro) -> Any:
    """Compile the model in blocks of 30 frames, 8 of them context."""
    return kokoro.compile(NPUW_KOKORO_BLOCK_SIZE=30, NPUW_KOKORO_OVERLAP_SIZE=8)
