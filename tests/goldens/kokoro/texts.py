"""Input texts of the tiny Kokoro."""

from __future__ import annotations

import numpy as np

VOCABULARY, TOKENS = 32, 24
"""Vocabulary, and the number of tokens that the model is reshaped to."""

STYLE = 256
"""Width of a voice."""

INPUTS, OUTPUTS = ("input_ids", "ref_s", "speed"), ("waveform", "phonemes")
"""Names of the outputs in optimum-intel's exporter; phonemes are the durations."""

LENGTHS = (12, 24)
"""Lengths of the texts in ``kokoro.npz``."""


def text(length: int, tokens: int = TOKENS) -> dict[str, np.ndarray]:
    """Draw a text that begins and ends with token 0, and a voice.

    Args:
        length: number of tokens in the text.
        tokens: number of tokens in the model; 0 pads the text.
    """
    random = np.random.RandomState(length)
    ids = np.zeros((1, tokens), np.int64)
    ids[0, 1 : length - 1] = random.randint(1, VOCABULARY, length - 2)
    voice = random.standard_normal((1, STYLE)).astype(np.float32)
    return {"input_ids": ids, "ref_s": voice, "speed": np.ones(1, np.float32)}
