"""Timestamp tokens: constraints on logits, and the segments that they divide a text into.

Source: the rules of openai/whisper, as openvino_genai has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from genai_layer.sampling.processors import Logits
from genai_layer.whisper.generation_config import WhisperGenerationConfig

_FRAMES_OF_A_STEP = 2
"""Frames of the spectrogram per timestamp step."""

OPEN_END = -1.0
"""End of a segment that continues beyond the audio."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Segment of a text between two timestamps, in seconds."""

    tokens: list[int]
    start: float
    end: float


@dataclass(slots=True)
class Segments:
    """Segments of a window's text."""

    parts: list[Segment] = field(default_factory=list[Segment])
    frames: int = 0
    """Frames from the window's beginning to the next window's."""

    @property
    def tokens(self) -> list[int]:
        """Tokens of all segments, without timestamps."""
        return [token for part in self.parts for token in part.tokens]


def constrain_timestamps(
    logits: Logits, generated: Sequence[int], config: WhisperGenerationConfig
) -> Logits:
    """Forbid tokens that would violate the rules for timestamps.

    Timestamps come in pairs, except at the end, and never decrease. A text begins with one. If all
    timestamps together are likelier than any other token, only timestamps are allowed.
    """
    first, allowed = config.first_timestamp, logits.copy()
    allowed[config.no_timestamps_token_id] = -np.inf
    times = [token for token in generated if token >= first]
    last_is_time = bool(generated) and generated[-1] >= first
    alone = last_is_time and len(generated) > 1 and generated[-2] < first
    if alone:
        allowed[: config.eos_token_id] = -np.inf
    elif last_is_time:
        allowed[first:] = -np.inf
    if times:
        allowed[first : times[-1] + (0 if alone else 1)] = -np.inf
    if not generated:
        allowed[:first] = -np.inf
        allowed[first + config.max_initial_timestamp_index + 1 :] = -np.inf
    if _log_sum(allowed[first:]) > allowed[:first].max():
        allowed[:first] = -np.inf
    return allowed


def _log_sum(logits: Logits) -> float:
    """Return the logarithm of the sum of the logits' exponentials."""
    highest = float(logits.max(initial=-np.inf))
    if not np.isfinite(highest):
        return highest
    return highest + float(np.log(np.exp(logits - highest, dtype=np.float64).sum()))


def cut_segments(
    tokens: Sequence[int], first: int, frames: int, step: float, offset: float
) -> Segments:
    """Divide a window's text at its timestamps.

    Args:
        tokens: the generated tokens.
        first: the token of the timestamp 0.
        frames: number of frames in the window.
        step: seconds per timestamp step.
        offset: beginning of the window in seconds.
    """
    found = Segments()
    begin: int | None = None
    for index, token in enumerate(tokens):
        if token < first:
            continue
        if begin is None:
            begin = index
        elif tokens[begin] != token:  # a repeated timestamp counts once
            start, end = ((each - first) * step + offset for each in (tokens[begin], token))
            found.parts.append(Segment([*tokens[begin + 1 : index]], start, end))
            found.frames = (token - first) * _FRAMES_OF_A_STEP
            begin = None
    if begin is None:
        found.frames = frames
    elif not found.parts and begin < len(tokens) - 1:
        start = (tokens[begin] - first) * step + offset
        found.parts.append(Segment([*tokens[begin + 1 :]], start, OPEN_END))
        found.frames = frames
    # A window without further segments is not read again.
    found.frames = found.frames or frames
    return found
