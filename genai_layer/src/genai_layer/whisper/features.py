"""Log-mel spectrogram of audio, Whisper's input.

Source: openvino_genai's WhisperFeatureExtractor; Slaney's mel scale, with filters of equal area.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.files import read_counts

Audio = npt.NDArray[np.float32]
"""Samples from -1 to 1."""

_HIGHEST = 8000.0
"""Upper frequency limit of the filters in hertz."""

_LINEAR_HERTZ, _LINEAR_MEL = 1000.0, 15.0
"""Frequency at which the scale changes from linear to logarithmic."""

_STEP = np.log(6.4) / 27.0
_SILENCE = 1e-10
_RANGE = 8.0
"""Dynamic range in powers of ten below the loudest value."""


@dataclass(frozen=True)
class FeatureExtractor:
    """Parameters of the spectrogram, from a folder's ``preprocessor_config.json``."""

    feature_size: int = 80
    """Number of filters, the rows of the spectrogram."""
    sampling_rate: int = 16000
    hop_length: int = 160
    """Samples from one frame to the next."""
    n_fft: int = 400
    """Samples per frame."""
    chunk_length: int = 30
    """Seconds of audio per window of the encoder."""
    n_samples: int = 480000
    nb_max_frames: int = 3000

    @staticmethod
    def from_file(path: Path) -> FeatureExtractor:
        """Read the file; missing entries have Whisper's values.

        Raises:
            ModelError: the file is not a JSON object, or a value is not a positive integer.
        """
        defaults = {each.name: int(str(each.default)) for each in fields(FeatureExtractor)}
        return FeatureExtractor(**read_counts(path, defaults))

    def extract(self, audio: Audio) -> npt.NDArray[np.float32]:
        """Compute the spectrogram, f32 [feature_size, frames], of at least one window.

        Raises:
            PromptError: the audio is too short for a frame.
        """
        edge = self.n_fft // 2
        if audio.ndim != 1 or len(audio) <= edge:
            raise PromptError(
                f"the audio has the shape {list(audio.shape)}; pass more than {edge} samples of "
                f"{self.sampling_rate} Hz in one dimension"
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
        """Triangular filters over a frame's frequencies, [feature_size, n_fft / 2 + 1]."""
        frequencies = np.linspace(0, self.sampling_rate // 2, 1 + self.n_fft // 2)
        corners = _hertz(np.linspace(0, _mel(_HIGHEST), self.feature_size + 2))[:, None]
        left, middle, right = corners[:-2], corners[1:-1], corners[2:]
        rising = (frequencies - left) / (middle - left)
        falling = (right - frequencies) / (right - middle)
        return np.maximum(0, np.minimum(rising, falling)) * 2 / (right - left)


def window(features: npt.NDArray[np.float32], begin: int, frames: int) -> Audio:
    """Return one window of the encoder, f32 [1, feature_size, frames], padded with zeros."""
    cut = features[:, begin : begin + frames]
    return np.pad(cut, [(0, 0), (0, frames - cut.shape[1])])[None]


def _mel(hertz: float) -> float:
    if hertz < _LINEAR_HERTZ:
        return hertz * _LINEAR_MEL / _LINEAR_HERTZ
    return float(_LINEAR_MEL + np.log(hertz / _LINEAR_HERTZ) / _STEP)


def _hertz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    linear = mel * _LINEAR_HERTZ / _LINEAR_MEL
    return np.where(mel < _LINEAR_MEL, linear, _LINEAR_HERTZ * np.exp(_STEP * (mel - _LINEAR_MEL)))
