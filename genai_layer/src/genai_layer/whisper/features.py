"""Audio to a spectrogram on the scale that people hear by (log-mel), as Whisper wants it.

Source: openvino_genai's WhisperFeatureExtractor; Slaney's mel scale, with filters of equal area.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.json_file import read_counts

Audio = npt.NDArray[np.float32]
"""Samples from -1 to 1."""

_HIGHEST = 8000.0
"""Hertz, up to which filters reach."""

_LINEAR_HERTZ, _LINEAR_MEL = 1000.0, 15.0
"""Where the scale goes from linear to logarithmic."""

_STEP = np.log(6.4) / 27.0
_SILENCE = 1e-10
_RANGE = 8.0
"""Powers of ten below the loudest that are told apart."""


@dataclass(frozen=True)
class FeatureExtractor:
    """How audio becomes a spectrogram: a folder's ``preprocessor_config.json``."""

    feature_size: int = 80
    """Rows: filters."""
    sampling_rate: int = 16000
    hop_length: int = 160
    """Samples from a frame to the next."""
    n_fft: int = 400
    """Samples of a frame."""
    chunk_length: int = 30
    """Seconds that the encoder hears at once."""
    n_samples: int = 480000
    nb_max_frames: int = 3000

    @staticmethod
    def from_file(path: Path) -> FeatureExtractor:
        """Read the file; what it does not say is Whisper's.

        Raises:
            ModelError: it is no JSON object, or a number is none.
        """
        defaults = {each.name: int(str(each.default)) for each in fields(FeatureExtractor)}
        return FeatureExtractor(**read_counts(path, defaults))

    def extract(self, audio: Audio) -> npt.NDArray[np.float32]:
        """Make the spectrogram, f32 [feature_size, frames]; at least one window's.

        Raises:
            PromptError: there is too little audio for a frame.
        """
        edge = self.n_fft // 2
        if audio.ndim != 1 or len(audio) <= edge:
            raise PromptError(
                f"raw_speech has the shape {list(audio.shape)}; give more than {edge} samples of "
                f"{self.sampling_rate} Hz, one after the other"
            )
        frames = max(len(audio), self.n_samples) // self.hop_length
        padded = np.zeros((frames - 1) * self.hop_length + self.n_fft + edge, np.float32)
        padded[:edge] = audio[edge:0:-1]  # mirrored
        end = min(len(audio), len(padded) - edge)
        padded[edge : edge + end] = audio[:end]
        begins = np.arange(frames) * self.hop_length
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.n_fft)[begins]
        power = np.abs(np.fft.rfft(windows * self._hann)) ** 2
        loudness = np.log10(np.maximum(self._filters @ power.T, _SILENCE))
        floor = loudness.max() - _RANGE
        return ((np.maximum(loudness, floor) + 4.0) / 4.0).astype(np.float32)

    @cached_property
    def _hann(self) -> npt.NDArray[np.float64]:
        return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.n_fft) / self.n_fft)

    @cached_property
    def _filters(self) -> npt.NDArray[np.float64]:
        """Triangles over the frequencies of a frame, [feature_size, n_fft / 2 + 1]."""
        frequencies = np.linspace(0, self.sampling_rate // 2, 1 + self.n_fft // 2)
        corners = _hertz(np.linspace(0, _mel(_HIGHEST), self.feature_size + 2))[:, None]
        left, middle, right = corners[:-2], corners[1:-1], corners[2:]
        rising = (frequencies - left) / (middle - left)
        falling = (right - frequencies) / (right - middle)
        return np.maximum(0, np.minimum(rising, falling)) * 2 / (right - left)


def window(features: npt.NDArray[np.float32], begin: int, frames: int) -> Audio:
    """Cut what the encoder hears at once, f32 [1, feature_size, frames], zeros behind the end."""
    cut = features[:, begin : begin + frames]
    return np.pad(cut, [(0, 0), (0, frames - cut.shape[1])])[None]


def _mel(hertz: float) -> float:
    if hertz < _LINEAR_HERTZ:
        return hertz * _LINEAR_MEL / _LINEAR_HERTZ
    return float(_LINEAR_MEL + np.log(hertz / _LINEAR_HERTZ) / _STEP)


def _hertz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    linear = mel * _LINEAR_HERTZ / _LINEAR_MEL
    return np.where(mel < _LINEAR_MEL, linear, _LINEAR_HERTZ * np.exp(_STEP * (mel - _LINEAR_MEL)))
