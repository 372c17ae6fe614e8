"""Texts that the tiny Kokoro is asked about, as it takes them."""

from __future__ import annotations

import numpy as np

VOCABULARY, TOKENS = 32, 24
"""Its tokens, and how many of them it is reshaped to."""

STYLE = 256
"""Numbers of a voice."""

INPUTS, OUTPUTS = ("input_ids", "ref_s", "speed"), ("waveform", "phonemes")
"""As optimum-intel's exporter calls them; phonemes are the durations."""

LENGTHS = (12, 24)
"""Of the texts in ``kokoro.npz``."""


def text(length: int, tokens: int = TOKENS) -> dict[str, np.ndarray]:
    """Give a text of so many tokens, between two 0, and a voice.

    Args:
        length: its tokens.
        tokens: of the model; 0 is behind the text.
    """
    random = np.random.RandomState(length)
    ids = np.zeros((1, tokens), np.int64)
    ids[0, 1 : length - 1] = random.randint(1, VOCABULARY, length - 2)
    voice = random.standard_normal((1, STYLE)).astype(np.float32)
    return {"input_ids": ids, "ref_s": voice, "speed": np.ones(1, np.float32)}
