"""Times are tokens: where they may stand, and the parts that they cut a text into.

Source: the rules of openai/whisper, as openvino_genai has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from genai_layer.sampling.processors import Logits
from genai_layer.whisper.generation_config import WhisperGenerationConfig

_FRAMES_OF_A_STEP = 2
"""A time is told to two frames of the spectrogram."""

OPEN_END = -1.0
"""The end of a part that the audio does not have."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text between two times, in seconds."""

    tokens: list[int]
    start: float
    end: float


@dataclass(slots=True)
class Segments:
    """What a window's text is cut into."""

    parts: list[Segment] = field(default_factory=list[Segment])
    frames: int = 0
    """Where the next window begins, from this one's beginning."""

    @property
    def tokens(self) -> list[int]:
        """The text of all of it, without times."""
        return [token for part in self.parts for token in part.tokens]


def constrain_timestamps(
    logits: Logits, generated: Sequence[int], config: WhisperGenerationConfig
) -> Logits:
    """Forbid tokens that would put a time where none may be.

    Times come in pairs, but for the last one; they do not go back; a text begins with one; and
    where times together are likelier than any other token, one is to come.
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
    """The logarithm of the sum of what the logits stand for."""
    highest = float(logits.max(initial=-np.inf))
    if not np.isfinite(highest):
        return highest
    return highest + float(np.log(np.exp(logits - highest, dtype=np.float64).sum()))


def cut_segments(
    tokens: Sequence[int], first: int, frames: int, step: float, offset: float
) -> Segments:
    """Cut a window's text at its times.

    Args:
        tokens: what was generated.
        first: the token of the time 0.
        frames: of the window.
        step: seconds from a time to the next.
        offset: when the window begins, in seconds.
    """
    found = Segments()
    begin: int | None = None
    for index, token in enumerate(tokens):
        if token < first:
            continue
        if begin is None:
            begin = index
        elif tokens[begin] != token:  # a time that is told twice is told once
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
    # What says nothing more is not heard again.
    found.frames = found.frames or frames
    return found
