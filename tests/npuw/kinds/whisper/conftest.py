"""A tiny Whisper that the real exporter wrote, and a request of its decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core

GOLDENS = Path(__file__).resolve().parents[3] / "goldens"
MELS, SPECTROGRAM, CHANNELS, FRAMES, BEGIN, EOS = 16, 3000, 32, 40, 257, 256
"""Shape of the model; FRAMES is the number of encoder frames in most tests: few are fast."""

EXACT = {
    "NPUW_WHISPER": "YES",
    "NPUW_WHISPER_EOS_TOKEN": EOS,
    "NPUW_WHISPER_ENCODER_LEN": FRAMES,
    "INFERENCE_PRECISION_HINT": "f32",
}


@dataclass(frozen=True)
class Whisper:
    """Both IRs, and the real OpenVINO's outputs for them; see tools/make_whisper_goldens.py."""

    encoder: Path
    decoder: Path
    said: Mapping[str, np.ndarray]

    @property
    def features(self) -> np.ndarray:
        """Return the spectrogram of the goldens."""
        random = np.random.RandomState(11)
        return random.standard_normal((1, MELS, SPECTROGRAM)).astype(np.float32)


class Text:
    """A request that reads tokens."""

    def __init__(self, request: Any) -> None:
        self.request = request

    def begin(self, *tokens: int, audio: np.ndarray) -> np.ndarray:
        """Read a prompt; return its logits [n, V]."""
        inputs = {"input_ids": np.array([tokens]), "encoder_hidden_states": audio}
        return self.request.infer(inputs)["logits"][0]

    def tell(self, *tokens: int) -> np.ndarray:
        """Read tokens one by one; return their logits [n, V]."""
        given = [self.request.infer({"input_ids": np.array([[token]])}) for token in tokens]
        return np.concatenate([each["logits"][0] for each in given])


@pytest.fixture(scope="session")
def whisper(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Whisper]:
    """Return a function that restores the models of a precision, e.g. ``whisper("fp16")``."""
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    made: dict[str, Whisper] = {}

    def make(precision: str) -> Whisper:
        if precision not in made:
            parts = [
                restore(GOLDENS / "whisper", f"{part}_{precision}", tmp_path_factory.mktemp(part))
                for part in ("encoder", "decoder")
            ]
            said = dict(np.load(GOLDENS / "whisper" / f"whisper_{precision}.npz"))
            made[precision] = Whisper(*parts, said)
        return made[precision]

    return make


@pytest.fixture(scope="session")
def decoder(whisper: Callable[[str], Whisper]) -> Path:
    """Return the decoder's IR."""
    return whisper("fp16").decoder


@pytest.fixture(scope="session")
def compiled(decoder: Path) -> Any:
    """Compile the decoder in f32, for FRAMES."""
    return Core().compile_model(decoder, "NPU", EXACT)


@pytest.fixture
def text(compiled: Any) -> Text:
    """Return a new request."""
    return Text(compiled.create_infer_request())


@pytest.fixture(scope="session")
def hear() -> Callable[[int], np.ndarray]:
    """Return a function that makes random encoder outputs."""

    def make(seed: int) -> np.ndarray:
        random = np.random.RandomState(seed)
        return random.standard_normal((1, FRAMES, CHANNELS)).astype(np.float32)

    return make
